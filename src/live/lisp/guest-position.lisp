;;;; Positions in the evaluated code: which form failed, at what line, and what incomplete code has left open. Separate
;;;; from the evaluator because error reports need it first. Nothing is read or evaluated here.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +form-chars+ 60 "Characters of a form in the line that names the failed form.")

(defvar *code-stream* nil "The stream from which the user's code is being read.")
(defvar *cursor* nil "The position in the code that is being evaluated.")

(defstruct (cursor (:constructor make-cursor (code)))
  (code "" :type string)
  ;; The current form: its number from 1, where reading it began and ended, and the form itself.
  (number 0 :type fixnum)
  (start 0 :type fixnum)
  (end nil)
  (form nil))

(defun form-start (code from)
  "The index of the first character at or after FROM that is not in white space or a comment."
  (loop
    (let ((at (position-if-not (lambda (char) (find char '(#\Space #\Newline #\Tab #\Return #\Page))) code
                               :start (min from (length code)))))
      (cond ((null at) (return (length code)))
            ((char= (char code at) #\;) (setf from (or (position #\Newline code :start at) (length code))))
            ((eql (search "#|" code :start2 at) at)
             (setf from (or (skip-block-comment code at) (return at))))
            (t (return at))))))

(defun cut-line (text)
  "The first line of TEXT, shortened."
  (let ((line (subseq text 0 (position #\Newline text))))
    (cond ((> (length line) +form-chars+) (concatenate 'string (subseq line 0 +form-chars+) "..."))
          ((< (length line) (length text)) (concatenate 'string line " ..."))
          (t line))))

(defun form-text (cursor start)
  (if (cursor-end cursor)
      (let ((*print-pretty* nil) (*print-length* 8) (*print-level* 4))
        (handler-case
            (cut-line (print-bounded (* 2 +form-chars+) (lambda (stream) (prin1 (cursor-form cursor) stream))))
          (error () (cut-line (subseq (cursor-code cursor) start (cursor-end cursor))))))
      ;; It could not be read, so its end is unknown.
      (format nil "~A ..." (string-right-trim " ." (cut-line (subseq (cursor-code cursor) start))))))

(defun failed-form-text ()
  "Which form failed and how many ran before it; nil if there is only one form."
  (let ((cursor *cursor*))
    (when (and cursor (plusp (cursor-number cursor)))
      (let* ((code (cursor-code cursor)) (start (form-start code (cursor-start cursor)))
             (before (1- (cursor-number cursor))))
        (when (or (plusp before) (and (cursor-end cursor) (< (form-start code (cursor-end cursor)) (length code))))
          (format nil "In form ~D, line ~D: ~A; ~[the forms after it were not evaluated~;the form before it was ~
                       evaluated~:;~:*the ~D forms before it were evaluated~]."
                  (cursor-number cursor) (line-and-column code start) (form-text cursor start) before))))))

(defparameter *unclosed-hint* "Use validate-syntax and match-paren to find the place.")

(defun unclosed-text (code)
  "Describe what incomplete CODE has left open."
  (let* ((scan (scan-code code)) (kind (scan-unfinished scan)) (open (nth-value 1 (pair-parens code scan))))
    (multiple-value-bind (line column)
        (line-and-column code (cond (kind (scan-unfinished-at scan)) (open (first (last open))) (t (length code))))
      (format nil "The code ends too early: ~A."
              (cond (kind (format nil "the ~A that begins at line ~D, column ~D is not ended" kind line column))
                    ((null open) "something is missing after its last character")
                    ((rest open)
                     (format nil "~D parentheses are not closed, the last of them opened at line ~D, column ~D"
                             (length open) line column))
                    (t (format nil "the parenthesis opened at line ~D, column ~D is not closed" line column)))))))

(defun reader-error-p (condition)
  "Whether CONDITION was signalled while reading the code."
  (and *code-stream* (typep condition 'stream-error)
       (eq (ignore-errors (stream-error-stream condition)) *code-stream*)))

(defun unclosed-p (condition)
  "Whether CONDITION says that the code is incomplete."
  (and *cursor* (typep condition 'end-of-file) (reader-error-p condition)))

(defun without-stream (text)
  "The reader's message TEXT without the part about its stream."
  (let ((cut (or (search ", File-Position" text) (search (format nil "~%~%  Stream:") text))))
    (if cut (subseq text 0 cut) text)))
