;;;; The wire to the host: frames on one duplex socket, which is descriptor 3. A frame is the decimal number of its
;;;; octets, a newline, and the octets. One thread reads; all may write, one whole frame at a time. What the frames
;;;; mean is told elsewhere.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +wire+ 3)

(defshared *mute* nil "Nothing is written: there is nobody yet to read it.")
(defshared *wire-lock* (sb-thread:make-mutex :name "catenary wire") "Whoever writes a frame has it.")

(defun leave (code)
  "At once, whatever the other threads do."
  (sb-ext:exit :code code :abort t))

(defun write-octets (start end)
  (declare (type index start end))
  (loop while (and (< start end) (not *mute*))
        do (multiple-value-bind (written problem)
               (sb-unix:unix-write +wire+ *frame* start (- end start))
             (cond (written (incf start written))
                   ((eql problem sb-unix:eintr))
                   (t (leave 0))))))

(defun say (message)
  "Sends one JSON value as a frame."
  (with-lock (*wire-lock*)
    (setf *fill* +head-room+)
    (put-value message)
    (let ((start +head-room+) (length (- *fill* +head-room+)))
      (declare (type index start length))
      (setf (aref *frame* (decf start)) 10)
      (loop do (multiple-value-bind (rest digit) (truncate length 10)
                 (setf (aref *frame* (decf start)) (+ 48 digit) length rest))
            until (zerop length))
      (write-octets start *fill*))
    ;; A large answer is no reason to keep a large frame for ever.
    (when (> (length *frame*) 1000000)
      (setf *frame* (make-array 65536 :element-type '(unsigned-byte 8))))
    nil))

(defconstant +landing+ 65536)

(defstruct (inbox (:constructor make-inbox ()))
  ;; Outside of the heap: the kernel cannot write to a page of it that a collection has protected meanwhile.
  (landing (sb-alien:alien-sap (sb-alien:make-alien (sb-alien:unsigned 8) +landing+))
   :type sb-sys:system-area-pointer)
  (octets (make-array 65536 :element-type '(unsigned-byte 8)) :type octets)
  (start 0 :type index)
  (end 0 :type index))

(defun make-room (inbox wanted)
  "Room for WANTED octets from the start of what was not yet taken."
  (declare (type index wanted))
  (let* ((old (inbox-octets inbox)) (kept (- (inbox-end inbox) (inbox-start inbox)))
         (new (if (> wanted (length old))
                  (make-array (+ wanted 65536) :element-type '(unsigned-byte 8))
                  old)))
    (replace new old :start2 (inbox-start inbox) :end2 (inbox-end inbox))
    (setf (inbox-octets inbox) new (inbox-start inbox) 0 (inbox-end inbox) kept)))

(defun take-in (inbox)
  "Reads what there is, at least one octet. The end of the wire is the end of the guest."
  (when (= (inbox-end inbox) (length (inbox-octets inbox)))
    (make-room inbox (1+ (- (inbox-end inbox) (inbox-start inbox)))))
  (let ((octets (inbox-octets inbox)) (end (inbox-end inbox)) (landing (inbox-landing inbox)))
    (declare (optimize (speed 1) (safety 0)) (type octets octets) (type index end))
    (loop
      (multiple-value-bind (count problem)
          (sb-unix:unix-read +wire+ landing (min +landing+ (- (length octets) end)))
        (cond ((null count) (unless (eql problem sb-unix:eintr) (leave 0)))
              ((zerop count) (leave 0))
              (t (dotimes (i (the index count))
                   (setf (aref octets (+ end i)) (sb-sys:sap-ref-8 landing i)))
                 (setf (inbox-end inbox) (+ end (the index count)))
                 (return)))))))

(defun next-octet (inbox)
  (when (= (inbox-start inbox) (inbox-end inbox))
    (setf (inbox-start inbox) 0 (inbox-end inbox) 0)
    (take-in inbox))
  (prog1 (aref (inbox-octets inbox) (inbox-start inbox)) (incf (inbox-start inbox))))

(defun hear (inbox)
  "The payload of the next frame, as a string."
  (let ((length 0))
    (declare (type index length))
    (loop for octet = (next-octet inbox)
          until (= octet 10)
          ;; The host writes no such thing; without a length there is no way on.
          do (unless (and (<= 48 octet 57) (< length 1000000000)) (leave 70))
             (setf length (+ (* 10 length) (- octet 48))))
    (when (> (+ (inbox-start inbox) length) (length (inbox-octets inbox))) (make-room inbox length))
    (loop while (< (- (inbox-end inbox) (inbox-start inbox)) length) do (take-in inbox))
    (let ((start (inbox-start inbox)))
      (incf (inbox-start inbox) length)
      (prog1 (sb-ext:octets-to-string (inbox-octets inbox) :external-format :utf-8 :start start :end (+ start length))
        (when (and (= (inbox-start inbox) (inbox-end inbox)) (> (length (inbox-octets inbox)) 1000000))
          (setf (inbox-octets inbox) (make-array 65536 :element-type '(unsigned-byte 8))
                (inbox-start inbox) 0
                (inbox-end inbox) 0))))))
