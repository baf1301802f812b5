;;;; Output streams that keep a bounded number of characters and count the rest. Those of a job send their content while
;;;; the job runs, a few kilobytes or a few milliseconds at a time. Output without a job becomes a background event.
;;;; Gathering streams only collect text for a tool or a printed value.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 0)))

(defconstant +chunk+ 4096 "Characters gathered before they are sent.")
(defconstant +flush-seconds+ 1/50 "How long fewer characters are held back.")
(defconstant +flush-apart+ 5000 "Microseconds between two flushes that the user's code requests.")
(defconstant +background-cap+ 100000 "Characters of background output sent between two requests.")

(deftype chunk () '(simple-array character (*)))

(defclass bounded-stream (sb-gray:fundamental-character-output-stream)
  ((taken :initform 0 :accessor taken :type fixnum)
   (dropped :initform 0 :accessor dropped :type fixnum)
   (cap :initarg :cap :accessor cap :type fixnum)
   (column :initform 0 :accessor column :type fixnum)
   (buffer :initform nil :accessor buffer)
   (fill :initform 0 :accessor buffered :type fixnum))
  (:documentation "Keeps the first CAP characters and counts the others."))

(defclass sending-stream (bounded-stream)
  ((job :initarg :job :accessor stream-job)
   (name :initarg :name :reader stream-name)
   (sent :initform 0 :accessor sent :type fixnum))
  (:documentation "Sends its content as output of its job, or as background output without a job."))

(defclass gathering-stream (bounded-stream)
  ((full :initarg :full :initform nil :reader full))
  (:documentation "Collects text. FULL is called when the first character does not fit."))

(defshared *output-lock* (sb-thread:make-mutex :name "catenary output") "Held while a stream is changed.")
(defshared *dirty* nil "Streams with unsent content.")
(defshared *dirty-signal* (sb-thread:make-semaphore :name "catenary output") "Signalled when a stream becomes dirty.")
(defshared *background* nil "The stream for threads without a job.")
(defshared *background-errors* nil "That for their error output.")

(defun send-buffer (stream)
  "Send the content of STREAM. Needs the lock."
  (unless (zerop (buffered stream))
    (let ((text (subseq (the chunk (buffer stream)) 0 (buffered stream))) (job (stream-job stream)))
      (setf (buffered stream) 0 (sent stream) (now))
      (send-message (if job
               (list :object "id" (job-id job) "output" text "stream" (stream-name stream))
               (list :object "event" "background" "text" text "stream" (stream-name stream)))))))

(defun make-space (stream)
  "Make space for one more character. Needs the lock."
  (let ((buffer (buffer stream)))
    (cond ((null buffer)
           (setf (buffer stream) (make-array (if (typep stream 'sending-stream) +chunk+ 256) :element-type 'character)))
          ((typep stream 'sending-stream) (send-buffer stream))
          (t (let ((wider (make-array (* 2 (length (the chunk buffer))) :element-type 'character)))
               (replace wider (the chunk buffer))
               (setf (buffer stream) wider))))))

(defun mark-dirty (stream)
  (when (typep stream 'sending-stream)
    (push stream *dirty*)
    (sb-thread:signal-semaphore *dirty-signal*)))

(defun keep (stream string start end)
  "Store a range that fits under the cap. Needs the lock."
  (declare (type fixnum start end) (type string string))
  (when (and (zerop (buffered stream)) (< start end)) (mark-dirty stream))
  (loop while (< start end)
        do (when (or (null (buffer stream)) (= (buffered stream) (length (the chunk (buffer stream)))))
             (make-space stream))
           (let* ((buffer (buffer stream)) (at (buffered stream))
                  (count (min (- end start) (- (length (the chunk buffer)) at))))
             (declare (type fixnum at count))
             (replace (the chunk buffer) string :start1 at :start2 start :end2 (+ start count))
             (setf (buffered stream) (+ at count))
             (incf start count))))

(defun orphaned-p (stream)
  "Whether the job of STREAM was answered, while another thread still prints to it."
  (and (typep stream 'sending-stream)
       (not (eq stream *background*))
       (not (eq stream *background-errors*))
       (let ((job (stream-job stream))) (or (null job) (job-answered job)))))

(defun accept-string (stream string start end)
  (declare (type fixnum start end))
  (if (orphaned-p stream)
      (accept-string (if (string= (stream-name stream) "stderr") *background-errors* *background*) string start end)
      (let ((free (- (cap stream) (taken stream))))
        (declare (type fixnum free))
        (when (plusp free)
          (with-lock (*output-lock*)
            (let* ((free (max 0 (- (cap stream) (taken stream)))) (part (min end (+ start free)))
                   (line (position #\Newline string :from-end t :start start :end part)))
              (declare (type fixnum free part))
              (keep stream string start part)
              (incf (taken stream) (- part start))
              (setf (column stream) (if line (- part line 1) (+ (column stream) (- part start))))
              (setf start part))))
        (when (< start end)
          (incf (dropped stream) (- end start))
          (when (and (typep stream 'gathering-stream) (full stream)) (funcall (full stream)))))))

(defun accept-char (stream char)
  (if (and (>= (taken stream) (cap stream)) (not (orphaned-p stream)) (not (typep stream 'gathering-stream)))
      (incf (dropped stream))
      (accept-string stream (string char) 0 1)))

(defmethod sb-gray:stream-write-char ((stream bounded-stream) char)
  (accept-char stream char)
  char)

(defmethod sb-gray:stream-write-string ((stream bounded-stream) string &optional (start 0) end)
  (accept-string stream string start (or end (length string)))
  string)

(defmethod sb-gray:stream-line-column ((stream bounded-stream)) (column stream))
(defmethod sb-gray:stream-finish-output ((stream bounded-stream)) nil)
(defmethod sb-gray:stream-force-output ((stream bounded-stream)) nil)
(defmethod sb-gray:stream-finish-output ((stream sending-stream)) (flush-now stream))
(defmethod sb-gray:stream-force-output ((stream sending-stream)) (flush-now stream))
(defmethod sb-gray:stream-clear-output ((stream bounded-stream)) nil)
;; Closing *standard-output* must not affect the next evaluation.
(defmethod close ((stream bounded-stream) &key abort) (declare (ignore abort)) t)

(defun flush (stream)
  ;; With the lock even if nothing is buffered: another thread may be about to send what was.
  (with-lock (*output-lock*) (send-buffer stream)))

(defun flush-now (stream)
  "Flush on request, so that output before a crash is not lost, but not for each of many small writes."
  (when (> (- (now) (sent stream)) +flush-apart+) (flush stream))
  nil)

(defun flush-loop ()
  "Flush output periodically, in its own thread, so that it does not wait for the end of the job."
  (loop
    (sb-thread:wait-on-semaphore *dirty-signal*)
    (sleep +flush-seconds+)
    (loop while (sb-thread:try-semaphore *dirty-signal*))
    (mapc #'flush (with-lock (*output-lock*) (shiftf *dirty* nil)))))

(defun gathered (stream)
  (subseq (the chunk (or (buffer stream) "")) 0 (buffered stream)))

(defun reset-background ()
  "Called with each job: report dropped background output and reset the limit."
  (dolist (stream (list *background* *background-errors*))
    (unless (zerop (taken stream))
      (with-lock (*output-lock*)
        (send-buffer stream)
        (unless (zerop (dropped stream))
          (send-message (list :object "event" "background"
                             "text" (format nil "~&[~:D more characters were not kept]~%" (dropped stream)))))
        (setf (taken stream) 0 (dropped stream) 0)))))

(defun flush-background ()
  (flush *background*)
  (flush *background-errors*))

(defun set-global-streams (&optional (input (make-concatenated-stream)))
  "Set the global streams, for threads without a job. Input is empty by default."
  (let* ((talk (make-two-way-stream input (make-synonym-stream '*standard-output*))))
    (setf *background* (make-instance 'sending-stream :job nil :name "stdout" :cap +background-cap+)
          *background-errors* (make-instance 'sending-stream :job nil :name "stderr" :cap +background-cap+))
    (loop for (name value) on (list '*standard-output* *background* '*error-output* *background-errors*
                                    '*trace-output* *background-errors* '*standard-input* input
                                    '*terminal-io* talk '*debug-io* talk '*query-io* talk)
          by #'cddr
          do (setf (sb-ext:symbol-global-value name) value)
             (set name value))))
