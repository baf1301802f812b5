;;;; Decides which thread reads the channel. An idle evaluator reads, so that one thread reads, runs and answers a short
;;;; job. After a moment of work the main thread reads instead, so that an interrupt always gets through. The next job
;;;; hands the reading back to the evaluator.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +watch-seconds+ 1/1000 "Seconds of work after which the main thread reads.")
(defconstant +idle-watches+ 20 "Watch intervals without work before the main thread sleeps.")

(defstruct (evaluator (:constructor make-evaluator ()))
  (queue (sb-thread:make-waitqueue))
  ;; The job that the main thread has read for it.
  (job nil)
  ;; The job that follows when an open error is unwound.
  (next nil)
  (thread nil))

(defvar *own-evaluator* nil "The evaluator of this thread.")
(defvar *own-handlers* nil "The handlers outside the user's code.")

(defshared *handoff-lock* (sb-thread:make-mutex :name "catenary handoff") "Guards the variables below.")
(defshared *evaluator* nil "The evaluator that takes jobs now.")
(defshared *main-reads* nil "Whether the main thread reads the channel.")
(defshared *active-job* nil "The job that the evaluator works on.")
(defshared *main-sleeps* nil "Whether the main thread waits to be woken.")
(defshared *main-queue* (sb-thread:make-waitqueue) "The queue in which it waits.")
(defshared *inbox* nil "Octets that were read but not used yet.")

(defun begin-job (job)
  (sb-thread:with-mutex (*handoff-lock*)
    (setf *active-job* job)
    (when *main-sleeps* (sb-thread:condition-notify *main-queue*))))

(defun end-job (job)
  (sb-thread:with-mutex (*handoff-lock*)
    (when (eq *active-job* job) (setf *active-job* nil))))

(defun next-turn (evaluator)
  "For an idle evaluator: the job that was read for it, :READ if it must read, or nil if it was replaced."
  (sb-thread:with-mutex (*handoff-lock*)
    (loop
      (cond ((not (eq evaluator *evaluator*)) (return nil))
            ((evaluator-job evaluator) (return (shiftf (evaluator-job evaluator) nil)))
            ((not *main-reads*) (return :read))
            (t (sb-thread:condition-wait (evaluator-queue evaluator) *handoff-lock*))))))

(defun hand-off (job)
  "The main thread gives a job to the evaluator, which reads from then on."
  (sb-thread:with-mutex (*handoff-lock*)
    (let ((evaluator *evaluator*))
      (setf (evaluator-job evaluator) job *active-job* job *main-reads* nil)
      (sb-thread:condition-notify (evaluator-queue evaluator)))))

(defun wait-for-job ()
  (sb-thread:with-mutex (*handoff-lock*)
    (loop until *active-job*
          do (setf *main-sleeps* t)
             (sb-thread:condition-wait *main-queue* *handoff-lock*))
    (setf *main-sleeps* nil)))

(defun watch-evaluator ()
  "Return when the evaluator has worked on one job for a moment; the main thread then reads the channel."
  (loop
    (wait-for-job)
    (loop with idle of-type fixnum = 0
          while (< idle +idle-watches+)
          do (let ((job *active-job*))
               (sleep +watch-seconds+)
               (sb-thread:with-mutex (*handoff-lock*)
                 (cond ((null *active-job*) (incf idle))
                       ((eq job *active-job*) (setf *main-reads* t) (return-from watch-evaluator))
                       (t (setf idle 0))))))))
