;;;; The heap limit. A collection copies live data, and SBCL exits if the heap becomes full while it copies. So the code
;;;; that allocates is stopped while all live data can still be copied. A single array larger than the heap is refused
;;;; by SBCL itself with an ordinary condition.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

;; A full collection holds live data twice, and more was allocated since the last one.
(defconstant +heap-trigger+ 42/100 "Fraction of the heap in use after a collection that triggers a full one.")
(defconstant +heap-limit+ 38/100 "Fraction in use after a full collection that is too much.")
(defconstant +heap-step+ 1/40 "Fraction that is allocated between collections.")

(defshared *heap-trigger* most-positive-fixnum "The first fraction in octets.")
(defshared *heap-limit* most-positive-fixnum "The second fraction in octets.")
(defshared *heap-exceeded* nil "Code was stopped and left garbage: collect it before the next job.")
(defshared *heap-collector* nil "The thread that runs a collection for this check.")

(defun set-heap ()
  (let ((heap (sb-ext:dynamic-space-size)))
    (setf (sb-ext:bytes-consed-between-gcs) (max 4000000 (floor (* heap +heap-step+)))
          *heap-trigger* (floor (* heap +heap-trigger+))
          *heap-limit* (floor (* heap +heap-limit+)))))

(defun heap-full-p ()
  "Run a full collection if needed; true if the heap is still too full."
  (and (null *heap-collector*)
       (> (sb-kernel:dynamic-usage) *heap-trigger*)
       (progn
         (setf *heap-collector* sb-thread:*current-thread*)
         (unwind-protect (sb-ext:gc :full t) (setf *heap-collector* nil))
         (> (sb-kernel:dynamic-usage) *heap-limit*))))

(defun heap-message ()
  (format nil "Heap nearly exhausted: ~:D of ~:D megabytes are in use, and a collection needs as much again. ~
               Stored data is kept: drop what you do not need."
          (round (sb-kernel:dynamic-usage) 1000000) (round (sb-ext:dynamic-space-size) 1000000)))

(defun stop-for-heap (job)
  (when (and (eq *job* job) (heap-full-p))
    (setf *heap-exceeded* t)
    (throw-out job (make-failure :kind :heap :type "HEAP-EXHAUSTED-ERROR"
                                 :message (format nil "~A~@[~%~A~]" (heap-message) (ignore-errors (failed-form-text)))
                                 :frames (handler-case (user-frames :safe) (error () '()))))))

(defun stop-thread-for-heap ()
  (when (heap-full-p)
    (setf *heap-exceeded* t)
    (send-message (list :object "event" "background"
                       "text" (format nil "Thread ~A was ended. ~A~%"
                                      (or (sb-thread:thread-name sb-thread:*current-thread*) "(unnamed)")
                                      (heap-message))))
    (sb-thread:abort-thread)))

(defun clear-heap ()
  (setf *heap-exceeded* nil)
  (setf * nil ** nil *** nil / nil // nil /// nil)
  (drop-handles)
  (sb-ext:gc :full t))
