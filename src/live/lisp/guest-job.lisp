;;;; Runs one job and sends its reply: the streams it prints to, the region in which it can be interrupted, and the JSON
;;;; of the result. Exactly one reply is sent, by whichever thread claims the job first.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defun claim (job)
  "True for the first thread that wants to answer the job."
  (null (sb-ext:compare-and-swap (job-answered job) nil t)))

(defun answer (id result &optional problem)
  (send-message (if problem (list :object "id" id "error" problem) (list :object "id" id "result" result))))

(defun failure-json (failure)
  (list :object
        "type" (failure-type failure)
        "message" (failure-message failure)
        "hint" (failure-hint failure)
        "open" (and (failure-open failure) :true)
        "restarts" (cons :array (loop for offer in (failure-restarts failure)
                                      collect (list :object "name" (or (offer-name offer) :null)
                                                            "description" (offer-text offer)
                                                            "takesValue" (and (offer-takes-value offer) :true))))
        "frames" (cons :array (loop for shown in (failure-frames failure) for number from 0
                                    collect (list :object "number" number "text" (shown-text shown)
                                                          "locals" (locals-json shown))))))

(defun locals-json (shown)
  (when (shown-locals shown)
    (cons :array (loop for (name text handle) in (shown-locals shown)
                       collect (list :object "name" name "value" text "handle" handle)))))

(defun dropped-json (job)
  (let ((out (dropped (job-out job))) (err (dropped (job-err job))))
    (unless (and (zerop out) (zerop err))
      (list :object "stdout" (and (plusp out) out) "stderr" (and (plusp err) err)))))

(defun warnings-json (job)
  (let ((more (- (job-warned job) (length (job-warnings job)))))
    (nconc (loop for (type message) in (reported-warnings job)
                 collect (list :object "type" type "message" message))
           (when (plusp more)
             (list (list :object "type" "WARNING" "message" (format nil "~:D more warnings were not kept." more)))))))

(defun package-note (job)
  "A line about the current package, if JOB has changed it."
  (let ((before (job-package job)) (now (session-package)))
    (and before (not (eq before now)) (format nil "The current package is now ~A." (package-name now)))))

(defun evaluation-json (job status texts failure timing &optional handles)
  "HANDLES are those of the values, in parallel, or nil if there are none."
  (list :object
        "status" status
        "values" (cons :array texts)
        "handles" (and handles (cons :array handles))
        "warnings" (cons :array (warnings-json job))
        "condition" (and failure (failure-json failure))
        "package" (package-name (session-package))
        "note" (package-note job)
        "timing" timing
        "dropped" (dropped-json job)
        "loaded" (loaded-json)
        "defined" (cons :array (loop for (type name) in (current-definitions job)
                                     collect (list :object "type" type "name" name)))
        "damaged" (and failure (failure-damaged failure) :true)))

(defun read-clock (job)
  "The run time needs a system call, so it is read only on request."
  (if (argument job :capture-time) (clock) (now)))

(defun job-timing (job)
  "The times from the beginning of JOB to its values, or to now."
  (let ((before (job-before job)) (after (or (job-after job) (read-clock job))))
    (if (listp before) (timing before after) (list :object "realMs" (milliseconds before after)))))

(defun evaluate-job (job)
  (let ((package (named-package (argument job :package))) (texts nil) (handles nil) (failure nil)
        (arguments (argument job :arguments)))
    (when arguments (setf sb-ext:*posix-argv* (cons "sbcl" arguments)))
    (if (null package)
        (values nil (no-package (argument job :package)))
        (let ((*package* package))
          (unwind-protect
               (setf failure
                     (nth-value 1 (guarded (:hold t)
                                    (let ((values (evaluate-code (argument job :code ""))))
                                      (setf (job-after job) (read-clock job))
                                      (setf (values texts handles) (value-texts values))))))
            (keep-package job))
          (when failure (setf *last-failure* failure))
          (evaluation-json job (if failure "error" "ok") (if failure '() texts) failure (job-timing job)
                           (and (null failure) handles))))))

(defun evaluation-p (job)
  "Whether the reply to JOB is an evaluation."
  (member (job-op job) '("eval" "evaluate-in-frame" "take-restart") :test #'string=))

(defun stopped-json (job failure)
  "The result of a job that was stopped."
  (let ((interrupted (eq (failure-kind failure) :interrupted)))
    (cond ((evaluation-p job)
           (unless (held-here) (setf *last-failure* failure))
           (evaluation-json job (if interrupted "interrupted" "error") '() failure
                            (list :object "realMs" (milliseconds (job-started job) (now)))))
          (interrupted (list :object "status" "interrupted"))
          (t (list :object "text" (failure-text failure) "isError" :true)))))

(defun finish (job result problem)
  (when (claim job)
    (end-calls job)
    (flush (job-out job))
    (flush (job-err job))
    (flush-background)
    ;; Output written through SBCL's own streams to descriptor 1 or 2.
    (ignore-errors (finish-output sb-sys:*stdout*) (finish-output sb-sys:*stderr*))
    (answer (job-id job) result problem)))

(defun open-job (id op arguments)
  "Create a job with everything that its reply needs."
  (let* ((job (make-job id (coerce op 'simple-string) arguments)) (cap (max-output job)))
    (setf (job-tag job) (list nil)
          (job-started job) (now)
          (job-out job) (make-instance 'sending-stream :job job :name "stdout" :cap cap)
          (job-err job) (make-instance 'sending-stream :job job :name "stderr" :cap cap))
    job))

(defun job-result (job)
  "The JSON result of JOB, or nil and an error message."
  (let ((op (job-op job)))
    (when (evaluation-p job) (setf (job-before job) (read-clock job) (job-package job) (session-package)))
    (cond ((string= op "eval") (evaluate-job job))
          ((string= op "evaluate-in-frame") (frame-job job))
          ((string= op "take-restart") (restart-job job))
          (t (tool-result job)))))

(defun run-job (job)
  "Run JOB and reply. Interrupts are enabled only while the user's code runs."
  (let ((tag (job-tag job)) (result nil) (problem nil) (done nil))
    (let* ((*job* job) (*standard-output* (job-out job)) (*error-output* (job-err job)) (*trace-output* (job-err job)))
      (sb-sys:without-interrupts
        (let ((thrown (catch tag
                        (sb-sys:with-local-interrupts
                          (when (job-cancelled job) (throw tag (interrupted-failure '())))
                          (setf (values result problem)
                                (job-result job))
                          (setf done t))
                        nil)))
          (unless (and done (null thrown)) (setf result (stopped-json job thrown) problem nil))
          (finish job result problem))))))
