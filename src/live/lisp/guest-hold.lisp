;;;; Open errors. An evaluation that fails answers, and its thread waits on top of the stack of the error, where it runs
;;;; the jobs that look at the error or take one of its restarts. Any other evaluation first unwinds that stack. An
;;;; evaluation that goes on after a restart answers under the id of the job that took it.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defstruct held
  "An open error: the job that failed, its failure and the thread that waits."
  job
  failure
  (thread sb-thread:*current-thread*))

(defshared *held* nil "The open error, or nil.")

(defparameter *closing-ops* '("eval" "close-error" "load-file" "load-system" "quickload" "time-execution" "profile-code"
                              "allocation-profile" "profile-functions" "run-tests" "save-session" "restore-session")
  "Jobs before which an open error is closed, because they run other code or need the whole process.")

(defun held-here ()
  "The open error of this thread, or nil."
  (let ((held *held*)) (and held (eq (held-thread held) sb-thread:*current-thread*) held)))

(defun error-open-p ()
  "Whether the evaluator waits at an error. For any thread."
  (let ((held *held*)) (and held (eq (held-thread held) (evaluator-thread *evaluator*)))))

(defun collecting-garbage-p ()
  "Whether a collection is impossible here: waiting would fill the heap."
  (let ((inhibit (optional-symbol "*GC-INHIBIT*" "SB-KERNEL"))) (and inhibit (boundp inhibit) (symbol-value inhibit))))

(defun may-hold-p (condition)
  (let ((job *job*))
    (and *hold* job (argument job :hold-errors)
         ;; An answered job is being unwound, and a cancelled one too.
         (not (job-answered job)) (not (job-cancelled job)) (null *held*) (not *heap-exceeded*)
         (not (typep condition '(or storage-condition sb-sys:memory-fault-error)))
         (not (reader-error-p condition)) (not (collecting-garbage-p)))))

(defun hold-error (failure)
  "Answer the job and serve others until one of them unwinds the stack. Never returns."
  (let* ((job *job*) (held (make-held :job job :failure failure)))
    (keep-package job)
    (setf *last-failure* failure (failure-open failure) t *held* held)
    (unwind-protect
         (progn
           (finish job (evaluation-json job "error" '() failure (job-timing job)) nil)
           (end-job job)
           (serve-held held))
      (setf (failure-open failure) nil *held* nil)
      (release-frames failure))))

(defun serve-held (held)
  (let ((evaluator *own-evaluator*))
    (loop
      (let ((job (next-job evaluator)))
        (when (or (null job) (member (job-op job) *closing-ops* :test #'string=))
          (setf (evaluator-next evaluator) job)
          (throw *guard-tag* (held-failure held)))
        (do-held-job held job)))))

(defun do-held-job (held job)
  "Run JOB. If it leaves by one of the restarts, the evaluation goes on and answers the job."
  ;; The handlers of the failed code are not for this job.
  (progv (list 'sb-kernel:*handler-clusters*) (list *own-handlers*)
    (unwind-protect (do-job job (established-restarts))
      (unless (or (job-answered job) (not (eq *own-evaluator* *evaluator*))) (adopt held job)))))

(defun adopt (held job)
  "Let the failed job go on in place of JOB."
  (let ((failed (held-job held)))
    (dolist (stream (list (job-out failed) (job-err failed)))
      (setf (taken stream) 0 (dropped stream) 0 (cap stream) (max-output job)))
    (setf (job-arguments failed) (job-arguments job)
          (job-warnings failed) nil (job-warned failed) 0 (job-defined failed) nil (job-noted failed) 0
          (job-started failed) (now) (job-before failed) (read-clock job) (job-cancelled failed) (job-cancelled job)
          (job-id failed) (job-id job) (job-package failed) (session-package)
          (job-answered job) t
          (job-answered failed) nil
          *latest-job* failed)
    (begin-job failed)))

(defmacro evaluation-result (job values)
  "The result of evaluating VALUES, a form that returns a list, like that of an evaluation. An error does not stay open."
  `(call-for-result ,job (lambda () ,values)))

(defun call-for-result (job function)
  (let ((texts nil) (handles nil))
    (let ((failure (nth-value 1 (guarded () (setf (values texts handles) (value-texts (funcall function)))))))
      (evaluation-json job (if failure "error" "ok") texts failure (job-timing job) handles))))

;;; Restarts

(defun open-error ()
  "The open error of this thread; refuses if there is none."
  (or (held-here) (refuse "No error is open. An error stays open until the next evaluation, or for a few minutes.")))

(defun restart-named (name restarts)
  "The restart with that name or number."
  (let ((number (and (plusp (length name)) (every #'digit-char-p name) (parse-integer name))))
    (or (if number
            (nth number restarts)
            (find name restarts :key #'offer-name :test #'equalp))
        (refuse "The open error has no restart ~A. ~A" name (offers-text restarts)))))

(defun offers-text (offers)
  (if offers
      (format nil "It offers:~{~%~A~}" (offer-lines offers))
      "It offers none."))

(defun restart-job (job)
  "take-restart: leaves this function through the restart, unless the restart only returns."
  (with-refusals
    (let* ((held (open-error)) (name (princ-to-string (argument job :restart "0"))) (code (argument job :value))
           (offers (failure-restarts (held-failure held)))
           (offer (restart-named (string-trim " :" name) offers)))
      (when (and (eq (offer-takes-value offer) t) (null code))
        (refuse "The restart ~A takes a value: give the argument value, with code for it." (offer-name offer)))
      (evaluation-result job
        (let ((values (and code (evaluate-in-frame (first (failure-frames (held-failure held))) code)))
              (restart (offer-restart offer)))
          (if (and (null code) (offer-asks offer))
              (multiple-value-list (invoke-restart-interactively restart))
              (multiple-value-list (apply #'invoke-restart restart values))))))))

;;; Code in a frame

(defun frame-package (shown)
  "The package of the function of the frame, in which its variables are named; else the current one."
  (let* ((frame (and shown (shown-frame shown)))
         (symbol (and frame (last-symbol (sb-di:debug-fun-name (sb-di:frame-debug-fun frame)))))
         (home (and symbol (symbolp symbol) (symbol-package symbol))))
    (if (and home (not (sb-ext:package-locked-p home))) home *package*)))

(defun evaluate-in-frame (shown code)
  "The values of CODE as a list, with the variables of the frame. Assignments change the variables themselves."
  (let ((*package* (frame-package shown)) (*noting* t) (values '()) (frame (and shown (shown-frame shown))))
    (do-forms (form code)
      (setf values (multiple-value-list
                    (if (and frame (sb-di:debug-var-info-available (sb-di:frame-debug-fun frame)))
                        (sb-di:eval-in-frame frame form)
                        (eval form)))))
    values))

(defun frame-job (job)
  (with-refusals
    (let* ((frames (failure-frames (held-failure (open-error)))) (number (argument job :frame 0))
           (shown (and (typep number '(integer 0)) (nth number frames))))
      (unless (or shown (eql number 0))
        (refuse "The open error has no frame ~A; its frames are numbered from 0 to ~D." number (1- (length frames))))
      (evaluation-result job (evaluate-in-frame shown (argument job :code ""))))))
