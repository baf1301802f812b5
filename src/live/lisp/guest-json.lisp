;;;; Writes JSON directly as octets, so that replies are valid UTF-8 whatever the user's strings contain. A lone
;;;; surrogate becomes an escape.
;;;;
;;;; A value is a string, a real, :TRUE, :FALSE, :NULL, or a list: (:OBJECT key value ...), (:ARRAY item ...), or
;;;; (:NUMBER text) for a number that is written as it is. A key with the value nil is left out.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 0)))

(defconstant +head-room+ 24 "Octets reserved before the payload for the line with its length.")

(declaim (type octets *frame*) (type index *fill*))
(defshared *frame* (make-array 65536 :element-type '(unsigned-byte 8)) "The frame that is being written.")
(defshared *fill* 0 "The number of octets in it.")

(defun widen (wanted)
  (declare (type index wanted))
  (let ((wider (make-array (max (* 2 (length *frame*)) wanted) :element-type '(unsigned-byte 8))))
    (replace wider *frame* :end2 *fill*)
    (setf *frame* wider)))

(declaim (inline put-octet))
(defun put-octet (octet)
  (declare (type (unsigned-byte 8) octet))
  (when (>= *fill* (length *frame*)) (widen (1+ *fill*)))
  (setf (aref *frame* *fill*) octet)
  (incf *fill*))

(defun put-ascii (text)
  (declare (type simple-string text))
  (loop for char across text do (put-octet (logand 127 (char-code char)))))

(defun put-escape (code)
  (declare (type (unsigned-byte 16) code))
  (put-octet 92)
  (put-octet 117)
  (loop for shift in '(12 8 4 0)
        do (put-octet (char-code (schar "0123456789abcdef" (ldb (byte 4 shift) code))))))

(defun put-code (code)
  (declare (type (integer 0 #x10FFFF) code))
  (cond ((= code 34) (put-octet 92) (put-octet 34))
        ((= code 92) (put-octet 92) (put-octet 92))
        ((= code 10) (put-octet 92) (put-octet 110))
        ((or (< code 32) (= code 127) (<= #xD800 code #xDFFF) (= code #x2028) (= code #x2029)) (put-escape code))
        ((< code #x80) (put-octet code))
        ((< code #x800)
         (put-octet (logior #xC0 (ash code -6)))
         (put-octet (logior #x80 (logand code 63))))
        ((< code #x10000)
         (put-octet (logior #xE0 (ash code -12)))
         (put-octet (logior #x80 (logand (ash code -6) 63)))
         (put-octet (logior #x80 (logand code 63))))
        (t
         (put-octet (logior #xF0 (ash code -18)))
         (put-octet (logior #x80 (logand (ash code -12) 63)))
         (put-octet (logior #x80 (logand (ash code -6) 63)))
         (put-octet (logior #x80 (logand code 63))))))

(defun put-text (text)
  (put-octet 34)
  (macrolet ((each (type) `(let ((text text))
                             (declare (type ,type text))
                             (loop for char across text do (put-code (char-code char))))))
    (typecase text
      (simple-base-string (each simple-base-string))
      ((simple-array character (*)) (each (simple-array character (*))))
      (t (loop for char across (the string text) do (put-code (char-code char))))))
  (put-octet 34))

(defun put-integer (number)
  (declare (type integer number))
  (cond ((minusp number) (put-octet 45) (put-integer (- number)))
        ((< number 10) (put-octet (+ 48 number)))
        (t (multiple-value-bind (rest digit) (truncate number 10)
             (put-integer rest)
             (put-octet (+ 48 digit))))))

(defun put-real (number)
  "Write NUMBER with three decimals, enough for milliseconds. Lisp's float syntax is not valid JSON."
  (multiple-value-bind (whole part) (truncate (round (* 1000 (rational number))) 1000)
    (when (and (zerop whole) (minusp part)) (put-octet 45))
    (put-integer whole)
    (put-octet 46)
    (let ((part (abs part)))
      (put-octet (+ 48 (floor part 100)))
      (put-octet (+ 48 (mod (floor part 10) 10)))
      (put-octet (+ 48 (mod part 10))))))

(defun put-members (members)
  (let ((first t))
    (loop for (key value) on members by #'cddr
          unless (null value)
            do (if first (setf first nil) (put-octet 44))
               (put-text key)
               (put-octet 58)
               (put-value value))))

(defun put-items (items)
  (let ((first t))
    (dolist (item items)
      (if first (setf first nil) (put-octet 44))
      (put-value item))))

(defun put-value (value)
  (etypecase value
    (string (put-text value))
    (integer (put-integer value))
    (real (put-real value))
    (cons (ecase (car value)
            (:object (put-octet 123) (put-members (cdr value)) (put-octet 125))
            (:array (put-octet 91) (put-items (cdr value)) (put-octet 93))
            (:number (put-ascii (cadr value)))))
    ((eql :true) (put-ascii "true"))
    ((eql :false) (put-ascii "false"))
    ((or null (eql :null)) (put-ascii "null"))))
