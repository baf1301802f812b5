;;;; Who reads the wire. The evaluator does while it is idle, so that a small job is read, done and answered by one
;;;; thread that waits for no other. While it works, the main thread looks on; and when it has worked for a moment, the
;;;; main thread reads in its place, so that an interrupt always gets in. The next job then brings the reading back.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +moment+ 1/1000 "Seconds of work after which the main thread reads.")
(defconstant +linger+ 20 "Moments without work until the main thread lies down and must be woken.")

(defstruct (evaluator (:constructor make-evaluator ()))
  (queue (sb-thread:make-waitqueue))
  ;; What the main thread has read for it.
  (job nil)
  (thread nil))

(defshared *desk* (sb-thread:make-mutex :name "catenary desk") "For what follows.")
(defshared *evaluator* nil "The one that takes jobs now.")
(defshared *main-reads* nil "Whether the wire is the main thread's.")
(defshared *work* nil "The job that the evaluator is at.")
(defshared *main-lies* nil "The main thread waits to be woken.")
(defshared *main-queue* (sb-thread:make-waitqueue) "Where it waits.")
(defshared *inbox* nil "What was read and not yet taken, by whoever reads.")

(defun begin-work (job)
  (sb-thread:with-mutex (*desk*)
    (setf *work* job)
    (when *main-lies* (sb-thread:condition-notify *main-queue*))))

(defun end-work (job)
  (sb-thread:with-mutex (*desk*)
    (when (eq *work* job) (setf *work* nil))))

(defun turn (evaluator)
  "For an idle evaluator: the job that was read for it, or :READ, or nil when another has taken its place."
  (sb-thread:with-mutex (*desk*)
    (loop
      (cond ((not (eq evaluator *evaluator*)) (return nil))
            ((evaluator-job evaluator) (return (shiftf (evaluator-job evaluator) nil)))
            ((not *main-reads*) (return :read))
            (t (sb-thread:condition-wait (evaluator-queue evaluator) *desk*))))))

(defun hand-over (job)
  "The main thread gives a job to the evaluator, and the reading with it."
  (sb-thread:with-mutex (*desk*)
    (let ((evaluator *evaluator*))
      (setf (evaluator-job evaluator) job *work* job *main-reads* nil)
      (sb-thread:condition-notify (evaluator-queue evaluator)))))

(defun wait-for-work ()
  (sb-thread:with-mutex (*desk*)
    (loop until *work*
          do (setf *main-lies* t)
             (sb-thread:condition-wait *main-queue* *desk*))
    (setf *main-lies* nil)))

(defun watch ()
  "Returns when the evaluator has been at one job for a moment; the wire is then the main thread's."
  (loop
    (wait-for-work)
    (loop with idle of-type fixnum = 0
          while (< idle +linger+)
          do (let ((work *work*))
               (sleep +moment+)
               (sb-thread:with-mutex (*desk*)
                 (cond ((null *work*) (incf idle))
                       ((eq work *work*) (setf *main-reads* t) (return-from watch))
                       (t (setf idle 0))))))))
