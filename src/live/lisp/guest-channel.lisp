;;;; The channel to the host: frames on a duplex socket, descriptor 3. A frame is the decimal number of its octets, a
;;;; newline, and the octets. One thread reads; all may write, one whole frame at a time.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +channel+ 3)

(defshared *muted* nil "If true, nothing is written, because there is no host.")
(defshared *channel-lock* (sb-thread:make-mutex :name "catenary channel") "Held while a frame is written.")

(defun exit-now (code)
  "End the process at once, whatever other threads do."
  (sb-ext:exit :code code :abort t))

(defun write-octets (start end)
  (declare (type index start end))
  (loop while (and (< start end) (not *muted*))
        do (multiple-value-bind (written problem)
               (sb-unix:unix-write +channel+ *frame* start (- end start))
             (cond (written (incf start written))
                   ((eql problem sb-unix:eintr))
                   (t (exit-now 0))))))

(defun send-message (message &optional (limit most-positive-fixnum))
  "Send one JSON value as a frame, unless it has more than LIMIT octets; then return true."
  (declare (type fixnum limit))
  (with-lock (*channel-lock*)
    (setf *fill* +head-room+)
    (put-value message)
    (let* ((start +head-room+) (length (- *fill* +head-room+)) (too-long (> length limit)))
      (declare (type index start length))
      (setf (aref *frame* (decf start)) 10)
      (loop do (multiple-value-bind (rest digit) (truncate length 10)
                 (setf (aref *frame* (decf start)) (+ 48 digit) length rest))
            until (zerop length))
      (unless too-long (write-octets start *fill*))
      ;; Do not keep a large buffer after a large reply.
      (when (> (length *frame*) 1000000)
        (setf *frame* (make-array 65536 :element-type '(unsigned-byte 8))))
      too-long)))

(defconstant +read-size+ 65536)

(defstruct (inbox (:constructor make-inbox ()))
  ;; Outside the heap: the kernel cannot write to a heap page that a collection has protected meanwhile.
  (read-buffer (sb-alien:alien-sap (sb-alien:make-alien (sb-alien:unsigned 8) +read-size+))
   :type sb-sys:system-area-pointer)
  (octets (make-array 65536 :element-type '(unsigned-byte 8)) :type octets)
  (start 0 :type index)
  (end 0 :type index))

(defun reserve-octets (inbox wanted)
  "Make space for WANTED octets from the start of the unread ones."
  (declare (type index wanted))
  (let* ((old (inbox-octets inbox)) (kept (- (inbox-end inbox) (inbox-start inbox)))
         (new (if (> wanted (length old))
                  (make-array (+ wanted 65536) :element-type '(unsigned-byte 8))
                  old)))
    (replace new old :start2 (inbox-start inbox) :end2 (inbox-end inbox))
    (setf (inbox-octets inbox) new (inbox-start inbox) 0 (inbox-end inbox) kept)))

(defun fill-inbox (inbox)
  "Read at least one octet. If the channel is closed, the process ends."
  (when (= (inbox-end inbox) (length (inbox-octets inbox)))
    (reserve-octets inbox (1+ (- (inbox-end inbox) (inbox-start inbox)))))
  (let ((octets (inbox-octets inbox)) (end (inbox-end inbox)) (buffer (inbox-read-buffer inbox)))
    (declare (optimize (speed 1) (safety 0)) (type octets octets) (type index end))
    (loop
      (multiple-value-bind (count problem)
          (sb-unix:unix-read +channel+ buffer (min +read-size+ (- (length octets) end)))
        (cond ((null count) (unless (eql problem sb-unix:eintr) (exit-now 0)))
              ((zerop count) (exit-now 0))
              (t (dotimes (i (the index count))
                   (setf (aref octets (+ end i)) (sb-sys:sap-ref-8 buffer i)))
                 (setf (inbox-end inbox) (+ end (the index count)))
                 (return)))))))

(defun next-octet (inbox)
  (when (= (inbox-start inbox) (inbox-end inbox))
    (setf (inbox-start inbox) 0 (inbox-end inbox) 0)
    (fill-inbox inbox))
  (prog1 (aref (inbox-octets inbox) (inbox-start inbox)) (incf (inbox-start inbox))))

(defun read-frame (inbox)
  "The payload of the next frame, as a string."
  (let ((length 0))
    (declare (type index length))
    (loop for octet = (next-octet inbox)
          until (= octet 10)
          ;; The host never sends this; without a length nothing more can be read.
          do (unless (and (<= 48 octet 57) (< length 1000000000)) (exit-now 70))
             (setf length (+ (* 10 length) (- octet 48))))
    (when (> (+ (inbox-start inbox) length) (length (inbox-octets inbox))) (reserve-octets inbox length))
    (loop while (< (- (inbox-end inbox) (inbox-start inbox)) length) do (fill-inbox inbox))
    (let ((start (inbox-start inbox)))
      (incf (inbox-start inbox) length)
      (prog1 (sb-ext:octets-to-string (inbox-octets inbox) :external-format :utf-8 :start start :end (+ start length))
        (when (and (= (inbox-start inbox) (inbox-end inbox)) (> (length (inbox-octets inbox)) 1000000))
          (setf (inbox-octets inbox) (make-array 65536 :element-type '(unsigned-byte 8))
                (inbox-start inbox) 0
                (inbox-end inbox) 0))))))
