;;;; The threads of a guest: the evaluator runs one job at a time, the main thread watches it and answers requests that
;;;; must not wait, and one thread flushes output. An evaluator that ignores interrupts is replaced. MAIN starts the
;;;; guest, from a saved core or after its files were loaded.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defshared *latest-job* nil "The job that was started last.")
(defshared *own-threads* nil "Threads of the guest other than evaluators.")
(defshared *wanted-save* nil "A job that saves the session. The main thread runs it, when the evaluator has ended.")
(defshared *exiting* nil "EXIT was called, and the threads are ending.")
(defshared *abandoned* nil "Threads of replaced evaluators, with the time of their last termination.")

(defun next-job (evaluator)
  "The next job for EVALUATOR; nil if it must end."
  (loop
    (let* ((turn (next-turn evaluator))
           (job (if (eq turn :read) (read-job) turn)))
      (when (and job (eq turn :read)) (begin-job job))
      (when (or job (null turn)) (return job)))))

(defun do-job (job base)
  "Run JOB. An error outside the user's code is an internal error of the guest."
  (let* ((tag (list nil))
         (own (catch tag
                (let ((*guard-tag* tag) (sb-ext:*invoke-debugger-hook* 'catch-failure))
                  (setf (job-base-restarts job) base)
                  (unwind-protect (unless (job-answered job) (run-job job))
                    (when *heap-exceeded* (clear-heap))
                    (end-job job)))
                nil)))
    (when (and own (claim job))
      (answer (job-id job) nil (format nil "Internal error in the session: ~A" (failure-message own))))))

(defun evaluator-loop (evaluator)
  (setf (evaluator-thread evaluator) sb-thread:*current-thread*)
  (let ((base (established-restarts)) (*own-evaluator* evaluator) (*own-handlers* sb-kernel:*handler-clusters*))
    (unwind-protect
         (loop for job = (or (shiftf (evaluator-next evaluator) nil) (next-job evaluator))
               while (and job (not (eq job *wanted-save*)))
               do (do-job job base))
      (replace-ended evaluator))))

(defun exiting-p ()
  "Whether EXIT was called, in this thread, which SBCL knows, or in another."
  (let ((here (optional-symbol "*EXIT-IN-PROGRESS*" "SB-IMPL")))
    (or *exiting* (and here (boundp here) (symbol-value here)))))

(defun replace-ended (evaluator)
  "The user's code has ended its own thread, for example by ABORT."
  (unless (or (not (eq evaluator *evaluator*)) *wanted-save* (exiting-p))
    (sb-sys:without-interrupts
      (let ((job (running-job nil)))
        (when job
          (finish job (stopped-json job (make-failure :type "ABORTED" :message "The evaluation ended its own thread."))
                  nil)))
      (replace-evaluator evaluator))))

(defun replace-evaluator (old)
  "Replace OLD by a new evaluator, unless another thread has done so."
  (let ((new (make-evaluator)))
    (when (sb-thread:with-mutex (*handoff-lock*)
            (when (eq *evaluator* old)
              ;; A job may have been read for the old one meanwhile.
              (setf (evaluator-job new) (and old (shiftf (evaluator-job old) nil))
                    *active-job* (evaluator-job new)
                    *evaluator* new)
              (when old (sb-thread:condition-broadcast (evaluator-queue old)))
              t))
      (sb-thread:make-thread #'evaluator-loop :arguments (list new) :name "evaluator"))))

;;; Requests that the reading thread answers itself.

(defun running-job (target)
  "The running job, if TARGET is nil or its id; else nil."
  (let ((job *latest-job*))
    (and job (not (job-answered job)) (or (null target) (eql target (job-id job))) job)))

(defun close-only-p (target)
  "Whether an interrupt without a target finds nothing but an open error, which it then closes."
  (and (member target '(nil 0)) (null (running-job nil)) (error-open-p)))

(defun interrupt (target)
  (let ((job (running-job target)))
    (when job
      (setf (job-cancelled job) (now))
      (ignore-errors
       (sb-thread:interrupt-thread (evaluator-thread *evaluator*) (lambda () (stop-interrupted job)))))
    (list :object "busy" (if job :true :false))))

;; Terminating a thread while it still unwinds can end the whole process.
(defconstant +terminate-interval+ 500000 "Microseconds from an interrupt or termination to the next termination.")

(defun terminate-abandoned ()
  "Terminate replaced evaluators again, since a cleanup form may survive one termination."
  (setf *abandoned* (delete-if-not #'sb-thread:thread-alive-p *abandoned* :key #'car))
  (dolist (entry *abandoned*)
    (when (> (- (now) (cdr entry)) +terminate-interval+)
      (setf (cdr entry) (now))
      (ignore-errors (sb-thread:terminate-thread (car entry))))))

(defun renew (target)
  (let ((job (running-job target)))
    (when job
      (let ((old *evaluator*))
        (when (and (not (member (evaluator-thread old) (list nil sb-thread:*current-thread*)))
                   (replace-evaluator old))
          (push (cons (evaluator-thread old) (or (job-cancelled job) 0)) *abandoned*)
          (terminate-abandoned)))
      (finish job (stopped-json job (interrupted-failure '())) nil))
    (list :object)))

(defun handle (request)
  "Answer REQUEST, or return its job."
  (let ((id (getf request :id)) (op (getf request :op)) (target (getf request :target)))
    (cond ((not (and (integerp id) (stringp op))) nil)
          ((string= op "ping") (answer id (list :object)))
          ((and (string= op "interrupt") (not (close-only-p target))) (answer id (interrupt target)))
          ((and (string= op "close-error") (running-job nil)) (answer id (list :object "text" "Something runs.")))
          ((string= op "renew") (answer id (renew target)))
          ((and (string= op "get-stack") (running-job nil)) (answer id (list :object "text" (stack-text (running-job nil)))))
          (t (reset-background)
             (when *abandoned* (terminate-abandoned))
             (setf *latest-job* (open-job id (if (string= op "interrupt") "close-error" op) request))
             ;; Set before the job begins, so that the main thread sees it when it wakes for the job.
             (when (string= op "save-session") (setf *wanted-save* *latest-job*))
             *latest-job*))))

(defun read-job ()
  "Read one request. Returns its job, or nil if it was answered."
  (let ((text (read-frame *inbox*)))
    (handler-case (unless (take-answer text) (handle (read-json text nil)))
      (error (condition)
        (send-message (list :object "event" "background"
                           "text" (format nil "Invalid request: ~A~%" (condition-text condition))))))))

(defun main-loop ()
  (loop
    (watch-evaluator)
    (if *wanted-save*
        (save-session *wanted-save*)
        (hand-off (loop (let ((job (read-job))) (when job (return job))))))))

;;; The rest of the process.

(defun watch-heap ()
  "Called after each collection, in the thread that triggered it or in SBCL's finalizer thread."
  (when (> (sb-kernel:dynamic-usage) *heap-trigger*)
    (let ((thread sb-thread:*current-thread*) (job (running-job nil)))
      (cond (*heap-collector*)
            ((not (or (member thread *own-threads*) (eq thread (evaluator-thread *evaluator*))
                      (string= (or (sb-thread:thread-name thread) "") "finalizer")))
             (stop-thread-for-heap))
            (job
             (ignore-errors
              (sb-thread:interrupt-thread (evaluator-thread *evaluator*) (lambda () (stop-for-heap job)))))))))

(defun report-unhandled (condition)
  (send-message (list :object "event" "background"
                     "text" (format nil "Unhandled ~A in thread ~A: ~A~%" (symbol-title (type-of condition))
                                    (or (sb-thread:thread-name sb-thread:*current-thread*) "(unnamed)")
                                    (condition-text condition)))))

(defun give-up (condition hook)
  (declare (ignore condition hook))
  (if (sb-thread:main-thread-p) (exit-now 70) (sb-thread:abort-thread)))

(defun unhandled (condition hook)
  "Report an unhandled condition in a thread of the user, and end the thread."
  (let ((sb-ext:*invoke-debugger-hook* 'give-up)) (report-unhandled condition))
  (let ((continue (find-restart 'continue condition)))
    ;; A BREAK can continue; an error would only be signalled again.
    (when (and continue (not (typep condition 'serious-condition))) (invoke-restart continue)))
  (give-up condition hook))

(defun keep-hook (function &rest arguments)
  "Replaces the functions that would install another debugger hook."
  (declare (ignore function arguments))
  nil)

(defconstant +close-on-exec+ 1)
(defconstant +exit-seconds+ 1 "How long EXIT waits for other threads: a replaced evaluator never ends.")

(defun set-process ()
  (let ((format (optional-symbol "*DEFAULT-EXTERNAL-FORMAT*" "SB-EXT"))) (when format (set format :utf-8)))
  ;; The core may have been saved by a process with another home folder.
  (let ((compute (optional-symbol "COMPUTE-USER-CACHE" "UIOP"))) (when compute (ignore-errors (funcall compute))))
  (sb-int:encapsulate 'sb-ext:disable-debugger 'catenary #'keep-hook)
  (sb-int:encapsulate 'sb-ext:enable-debugger 'catenary #'keep-hook)
  (set-prompts)
  (set-heap)
  (pushnew 'watch-heap sb-ext:*after-gc-hooks*)
  (push (lambda () (setf *exiting* t)) sb-ext:*exit-hooks*)
  (setf sb-ext:*exit-timeout* +exit-seconds+)
  (setf (sb-ext:symbol-global-value '*macroexpand-hook*) 'expand-noting)
  (setf sb-ext:*invoke-debugger-hook* 'unhandled)
  (sb-sys:enable-interrupt sb-unix:sigint :ignore)
  (sb-sys:enable-interrupt sb-unix:sigpipe :ignore)
  (sb-sys:enable-interrupt sb-unix:sigterm :default)
  ;; Child processes of the user's code must not keep the channel open.
  (sb-posix:fcntl +channel+ sb-posix:f-setfd +close-on-exec+)
  (sb-ext:lock-package "CATENARY-GUEST")
  (set-global-streams (sb-sys:make-fd-stream 0 :input t :buffering :full :external-format '(:utf-8 :replacement #\?))))

(defun start-flushing ()
  (setf *own-threads* (list sb-thread:*current-thread* (sb-thread:make-thread #'flush-loop :name "output"))))

(defun main ()
  (set-process)
  ;; A restored session has a package already.
  (setf *session-package* (session-package)
        (sb-ext:symbol-global-value '*package*) *session-package*)
  (start-flushing)
  (setf *inbox* (make-inbox))
  (send-message (list :object "event" "ready"
                     "version" (format nil "SBCL ~A" (lisp-implementation-version))))
  (replace-evaluator nil)
  (main-loop))
