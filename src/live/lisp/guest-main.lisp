;;;; The threads of a guest: an evaluator takes one job at a time; the main one looks on, and answers at once what must
;;;; never wait; one sends output that has waited. A new evaluator takes over when the old one does not give way. MAIN
;;;; is where a guest begins, from a saved core or after its files were loaded.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defshared *running* nil "The job that was given to it last.")
(defshared *own-threads* nil "Those of the guest that are not evaluators.")
(defshared *leaving* nil "EXIT was called, and the threads end one after the other.")
(defshared *abandoned* nil "Threads of evaluators that did not give way, with the times when they were last pressed.")

(defun next-job (evaluator)
  "Nil when it is to end."
  (loop
    (let* ((turn (turn evaluator))
           (job (if (eq turn :read) (hear-job) turn)))
      (when (and job (eq turn :read)) (begin-work job))
      (when (or job (null turn)) (return job)))))

(defun do-job (job base)
  "A failure outside of the user's code is the guest's own, and is answered as such."
  (let* ((tag (list nil))
         (own (catch tag
                (let ((*guard-tag* tag) (sb-ext:*invoke-debugger-hook* 'catch-failure))
                  (setf (job-base-restarts job) base)
                  (unwind-protect (unless (job-answered job) (run-job job))
                    (when *heap-tripped* (clear-heap))
                    (end-work job)))
                nil)))
    (when (and own (claim job))
      (answer (job-id job) nil (format nil "The guest itself failed: ~A" (failure-message own))))))

(defun evaluate-for-ever (evaluator)
  (setf (evaluator-thread evaluator) sb-thread:*current-thread*)
  (let ((base (compute-restarts)))
    (unwind-protect
         (loop for job = (next-job evaluator)
               while job
               do (do-job job base))
      (replace-ended evaluator))))

(defun leaving-p ()
  "Whether EXIT was called: in this thread, which SBCL knows by itself, or in another."
  (let ((here (later "*EXIT-IN-PROGRESS*" "SB-IMPL")))
    (or *leaving* (and here (boundp here) (symbol-value here)))))

(defun replace-ended (evaluator)
  "The user's code has ended the thread that it ran in: by ABORT, for one, which nothing nearer offers."
  (unless (or (not (eq evaluator *evaluator*)) (leaving-p))
    (sb-sys:without-interrupts
      (let ((job (running nil)))
        (when job
          (finish job (stopped-json job (make-failure :type "ABORTED" :message "The evaluation ended its own thread."))
                  nil)))
      (replace-evaluator evaluator))))

(defun replace-evaluator (old)
  "A new evaluator, unless somebody else was quicker."
  (let ((new (make-evaluator)))
    (when (sb-thread:with-mutex (*desk*)
            (when (eq *evaluator* old)
              ;; A job may have been read for the old one since.
              (setf (evaluator-job new) (and old (shiftf (evaluator-job old) nil))
                    *work* (evaluator-job new)
                    *evaluator* new)
              (when old (sb-thread:condition-broadcast (evaluator-queue old)))
              t))
      (sb-thread:make-thread #'evaluate-for-ever :arguments (list new) :name "evaluator"))))

;;; What the one who reads answers by itself.

(defun running (target)
  "The job that runs and is meant, or nil."
  (let ((job *running*))
    (and job (not (job-answered job)) (or (null target) (eql target (job-id job))) job)))

(defun interrupt (target)
  (let ((job (running target)))
    (when job
      (setf (job-cancelled job) (now))
      (ignore-errors
       (sb-thread:interrupt-thread (evaluator-thread *evaluator*) (lambda () (stop-interrupted job)))))
    (list :object "busy" (if job :true :false))))

;; Terminated while it is still being thrown out, a thread may take the whole process with it.
(defconstant +press-microseconds+ 500000 "From an interrupt or a termination of a thread to the next termination.")

(defun press-abandoned ()
  "A cleanup form may hold out against one termination; a later job brings another."
  (setf *abandoned* (delete-if-not #'sb-thread:thread-alive-p *abandoned* :key #'car))
  (dolist (entry *abandoned*)
    (when (> (- (now) (cdr entry)) +press-microseconds+)
      (setf (cdr entry) (now))
      (ignore-errors (sb-thread:terminate-thread (car entry))))))

(defun renew (target)
  (let ((job (running target)))
    (when job
      (let ((old *evaluator*))
        (when (and (not (member (evaluator-thread old) (list nil sb-thread:*current-thread*)))
                   (replace-evaluator old))
          (push (cons (evaluator-thread old) (or (job-cancelled job) 0)) *abandoned*)
          (press-abandoned)))
      (finish job (stopped-json job (interrupted-failure '())) nil))
    (list :object)))

(defun handle (request)
  "Answers it, or returns the job that it is."
  (let ((id (getf request :id)) (op (getf request :op)) (target (getf request :target)))
    (cond ((not (and (integerp id) (stringp op))) nil)
          ((string= op "ping") (answer id (list :object)))
          ((string= op "interrupt") (answer id (interrupt target)))
          ((string= op "renew") (answer id (renew target)))
          (t (renew-background)
             (when *abandoned* (press-abandoned))
             (setf *running* (open-job id op request))))))

(defun hear-job ()
  "Reads one request. The job that it is, or nil when it was answered."
  (let ((text (hear *inbox*)))
    (handler-case (handle (read-request text))
      (error (condition)
        (say (list :object "event" "background"
                           "text" (format nil "A request was not understood: ~A~%" (condition-text condition))))))))

(defun look-on-for-ever ()
  (loop
    (watch)
    (hand-over (loop (let ((job (hear-job))) (when job (return job)))))))

;;; The rest of the process.

(defun watch-heap ()
  "After each collection, in the thread that asked for it or in SBCL's own for such things."
  (when (> (sb-kernel:dynamic-usage) *heap-line*)
    (let ((thread sb-thread:*current-thread*) (job (running nil)))
      (cond (*heap-watched*)
            ((not (or (member thread *own-threads*) (eq thread (evaluator-thread *evaluator*))
                      (string= (or (sb-thread:thread-name thread) "") "finalizer")))
             (stop-thread-for-heap))
            (job
             (ignore-errors
              (sb-thread:interrupt-thread (evaluator-thread *evaluator*) (lambda () (stop-for-heap job)))))))))

(defun tell-unhandled (condition)
  (say (list :object "event" "background"
                     "text" (format nil "Unhandled ~A in thread ~A: ~A~%" (symbol-title (type-of condition))
                                    (or (sb-thread:thread-name sb-thread:*current-thread*) "without a name")
                                    (condition-text condition)))))

(defun give-up (condition hook)
  (declare (ignore condition hook))
  (if (sb-thread:main-thread-p) (leave 70) (sb-thread:abort-thread)))

(defun unhandled (condition hook)
  "A thread of the user's has nobody to ask: it is told of, and it ends."
  (let ((sb-ext:*invoke-debugger-hook* 'give-up)) (tell-unhandled condition))
  (let ((continue (find-restart 'continue condition)))
    ;; A break is only a place to look at; an error would come again.
    (when (and continue (not (typep condition 'serious-condition))) (invoke-restart continue)))
  (give-up condition hook))

(defun keep-hook (function &rest arguments)
  "In place of those that put another debugger where the guest's is."
  (declare (ignore function arguments))
  nil)

(defconstant +close-on-exec+ 1)
(defconstant +exit-seconds+ 1 "What EXIT gives the other threads to end: one that was given up never will.")

(defun set-process ()
  (let ((format (later "*DEFAULT-EXTERNAL-FORMAT*" "SB-EXT"))) (when format (set format :utf-8)))
  ;; A core was saved by a process that may have had another home.
  (let ((compute (later "COMPUTE-USER-CACHE" "UIOP"))) (when compute (ignore-errors (funcall compute))))
  (sb-int:encapsulate 'sb-ext:disable-debugger 'catenary #'keep-hook)
  (sb-int:encapsulate 'sb-ext:enable-debugger 'catenary #'keep-hook)
  (set-heap)
  (pushnew 'watch-heap sb-ext:*after-gc-hooks*)
  (push (lambda () (setf *leaving* t)) sb-ext:*exit-hooks*)
  (setf sb-ext:*exit-timeout* +exit-seconds+)
  (setf (sb-ext:symbol-global-value '*macroexpand-hook*) 'expand-noting)
  (setf sb-ext:*invoke-debugger-hook* 'unhandled)
  (sb-sys:enable-interrupt sb-unix:sigint :ignore)
  (sb-sys:enable-interrupt sb-unix:sigpipe :ignore)
  (sb-sys:enable-interrupt sb-unix:sigterm :default)
  ;; A program that the user's code starts must not hold our wire open.
  (sb-posix:fcntl +wire+ sb-posix:f-setfd +close-on-exec+)
  (sb-ext:lock-package "CATENARY-GUEST")
  (set-global-streams))

(defun main ()
  (set-process)
  (setf *session-package* (find-package "COMMON-LISP-USER")
        (sb-ext:symbol-global-value '*package*) *session-package*)
  (setf *own-threads* (list sb-thread:*current-thread* (sb-thread:make-thread #'flush-for-ever :name "output")))
  (setf *inbox* (make-inbox))
  (say (list :object "event" "ready"
                     "version" (format nil "SBCL ~A" (lisp-implementation-version))))
  (replace-evaluator nil)
  (look-on-for-ever))
