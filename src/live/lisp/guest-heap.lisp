;;;; The heap's limit. SBCL ends the process when the heap is full during a collection, which copies what is alive; so
;;;; whoever allocates is stopped while all that lives can still be copied. An array that is too large by itself is no
;;;; matter of this file: SBCL refuses it with an ordinary condition.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

;; What lives is there twice at the end of a full collection, and something was allocated since the last one.
(defconstant +heap-line+ 42/100 "Part of the heap in use after a collection that asks for a full one.")
(defconstant +heap-alive+ 38/100 "Part of it in use after the full one that is too much.")
(defconstant +heap-step+ 1/40 "Part of it that is allocated between collections.")

(defshared *heap-line* most-positive-fixnum "The first, in octets.")
(defshared *heap-alive* most-positive-fixnum "The second.")
(defshared *heap-tripped* nil "Somebody was stopped, and left garbage: collect it before the next job.")
(defshared *heap-watched* nil "The thread that is collecting because of us.")

(defun set-heap ()
  (let ((heap (sb-ext:dynamic-space-size)))
    (setf (sb-ext:bytes-consed-between-gcs) (max 4000000 (floor (* heap +heap-step+)))
          *heap-line* (floor (* heap +heap-line+))
          *heap-alive* (floor (* heap +heap-alive+)))))

(defun heap-full-p ()
  "Collects, when there is need, and says whether that did not help."
  (and (null *heap-watched*)
       (> (sb-kernel:dynamic-usage) *heap-line*)
       (progn
         (setf *heap-watched* sb-thread:*current-thread*)
         (unwind-protect (sb-ext:gc :full t) (setf *heap-watched* nil))
         (> (sb-kernel:dynamic-usage) *heap-alive*))))

(defun heap-message ()
  (format nil "Heap nearly exhausted: ~:D of ~:D megabytes are alive, and a collection needs as much again. ~
               What was stored is kept: drop what is not needed."
          (round (sb-kernel:dynamic-usage) 1000000) (round (sb-ext:dynamic-space-size) 1000000)))

(defun stop-for-heap (job)
  (when (and (eq *job* job) (heap-full-p))
    (setf *heap-tripped* t)
    (throw-out job (make-failure :kind :heap :type "HEAP-EXHAUSTED-ERROR"
                                 :message (format nil "~A~@[~%~A~]" (heap-message) (ignore-errors (spot-text)))
                                 :frames (handler-case (user-frames :calm) (error () '()))))))

(defun stop-thread-for-heap ()
  (when (heap-full-p)
    (setf *heap-tripped* t)
    (say (list :object "event" "background"
                       "text" (format nil "Thread ~A was ended. ~A~%"
                                      (or (sb-thread:thread-name sb-thread:*current-thread*) "without a name")
                                      (heap-message))))
    (sb-thread:abort-thread)))

(defun clear-heap ()
  (setf *heap-tripped* nil)
  (setf * nil ** nil *** nil / nil // nil /// nil)
  (sb-ext:gc :full t))
