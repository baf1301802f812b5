;;;; Where in a piece of code its evaluation stands: which form, at what line, and what a text that ends too early has
;;;; left open. Apart from the evaluator because a failure is told from here while the stack still stands. Nothing is
;;;; read or evaluated here.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +form-chars+ 60 "Characters of a form in the line that says which one failed.")

(defvar *code-stream* nil "What the user's code is being read from, while it is read.")
(defvar *spot* nil "Of the code that is being evaluated.")

(defstruct (spot (:constructor make-spot (code)))
  (code "" :type string)
  ;; Of the form that is read or evaluated: its number from 1, where reading it began and ended, and itself.
  (number 0 :type fixnum)
  (start 0 :type fixnum)
  (end nil)
  (form nil))

(defun form-start (code from)
  "The index of the first character at or behind FROM that is no white space and no comment."
  (loop
    (let ((at (position-if-not (lambda (char) (find char '(#\Space #\Newline #\Tab #\Return #\Page))) code
                               :start (min from (length code)))))
      (cond ((null at) (return (length code)))
            ((char= (char code at) #\;) (setf from (or (position #\Newline code :start at) (length code))))
            ((eql (search "#|" code :start2 at) at)
             (setf from (or (skip-block-comment code at) (return at))))
            (t (return at))))))

(defun cut-line (text)
  "The first line of TEXT, short."
  (let ((line (subseq text 0 (position #\Newline text))))
    (cond ((> (length line) +form-chars+) (concatenate 'string (subseq line 0 +form-chars+) "..."))
          ((< (length line) (length text)) (concatenate 'string line " ..."))
          (t line))))

(defun form-text (spot start)
  (if (spot-end spot)
      (let ((*print-pretty* nil) (*print-length* 8) (*print-level* 4))
        (handler-case (cut-line (print-bounded (* 2 +form-chars+) (lambda (stream) (prin1 (spot-form spot) stream))))
          (error () (cut-line (subseq (spot-code spot) start (spot-end spot))))))
      ;; It could not be read, so nobody knows where it ends.
      (format nil "~A ..." (string-right-trim " ." (cut-line (subseq (spot-code spot) start))))))

(defun spot-text ()
  "Which form has failed and what has run before it; nil where there is but one."
  (let ((spot *spot*))
    (when (and spot (plusp (spot-number spot)))
      (let* ((code (spot-code spot)) (start (form-start code (spot-start spot))) (before (1- (spot-number spot))))
        (when (or (plusp before) (and (spot-end spot) (< (form-start code (spot-end spot)) (length code))))
          (format nil "In form ~D, line ~D: ~A; ~[the forms after it were not evaluated~;the form before it was ~
                       evaluated~:;~:*the ~D forms before it were evaluated~]."
                  (spot-number spot) (place-of code start) (form-text spot start) before))))))

(defun unclosed-text (code)
  "What CODE, which ends too early, has left open."
  (let* ((scan (scan-code code)) (kind (scan-unfinished scan)) (open (nth-value 1 (pair-parens code scan))))
    (multiple-value-bind (line column)
        (place-of code (cond (kind (scan-unfinished-at scan)) (open (first (last open))) (t (length code))))
      (format nil "The code ends too early: ~A.~%validate-syntax and match-paren help to find the place."
              (cond (kind (format nil "the ~A that begins at line ~D, column ~D is not ended" kind line column))
                    ((null open) "something is missing behind its last character")
                    ((rest open)
                     (format nil "~D parentheses are not closed, the last of them opened at line ~D, column ~D"
                             (length open) line column))
                    (t (format nil "the parenthesis opened at line ~D, column ~D is not closed" line column)))))))

(defun reading-p (condition)
  "Whether CONDITION is about the text of the code itself."
  (and *code-stream* (typep condition 'stream-error)
       (eq (ignore-errors (stream-error-stream condition)) *code-stream*)))

(defun without-stream (text)
  "What the reader says, without its stream, which is none of the user's."
  (let ((cut (or (search ", File-Position" text) (search (format nil "~%~%  Stream:") text))))
    (if cut (subseq text 0 cut) text)))
