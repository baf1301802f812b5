;;;; compile-form: what the compiler says of code that is not run. The forms become the body of a function that is
;;;; never called, so no definition is installed; the user's macros do run, as they must. An error of the compiler is
;;;; handled within the compiler and never signalled outside, so its text is taken from what the compiler prints.

(in-package "CATENARY-GUEST")

(defun definitions-in (forms)
  "The names that FORMS would define: being told that they are undefined is of no use."
  (loop for form in forms
        when (and (consp form) (consp (rest form))
                  (member (first form) '(defun defgeneric defmacro defvar defparameter defconstant defstruct defclass)))
          collect (let ((name (second form))) (if (and (consp name) (not (eq (first name) 'setf))) (first name) name))))

(defun about-own-definition-p (message names)
  (let ((*package* (find-package "KEYWORD")))
    (some (lambda (name)
            (or (string= message (format nil "undefined function: ~S" name))
                (string= message (format nil "undefined variable: ~S" name))))
          names)))

(defun caught-errors (output)
  "The texts of the errors in what the compiler printed."
  (let ((found '()) (current nil))
    (dolist (line (lines-of output) (nreverse (mapcar #'tidy-lines found)))
      (cond ((string= line "; caught ERROR:") (push '() found) (setf current t))
            ((and current (>= (length line) 3) (string= ";  " line :end2 3))
             (push (subseq line 3) (first found)))
            (t (setf current nil))))))

(defun tidy-lines (lines)
  "LINES, last first, as one text; each without the indentation that all have."
  (let* ((texts (remove "" (mapcar (lambda (l) (string-right-trim " " l)) (reverse lines)) :test #'string=)))
    (format nil "~{~A~^~%    ~}" (mapcar (lambda (l) (string-left-trim " " l)) texts))))

(defun compile-quietly (forms)
  "The errors, the warnings and the notes that compiling FORMS gives, and whether the compiler calls it a failure."
  (let ((warnings '()) (notes '()) (failed nil) (names (definitions-in forms)) (printed (make-string-output-stream)))
    (flet ((warned (condition)
             (let ((message (message-of condition)))
               (unless (about-own-definition-p message names)
                 (unless (typep condition 'style-warning) (setf failed t))
                 (push (format nil "~:[~;[STYLE] ~]~A" (typep condition 'style-warning) (one-line message))
                       warnings)))))
      (handler-bind ((warning #'warned)
                     (sb-ext:compiler-note (lambda (c) (push (one-line (message-of c)) notes))))
        (let ((*error-output* printed) (*standard-output* (make-broadcast-stream)))
          (compile nil `(lambda () ,@forms)))))
    (let ((errors (caught-errors (get-output-stream-string printed))))
      (values errors (nreverse warnings) (nreverse notes) (or failed (and errors t))))))

(deftool "compile-form" (code package)
  (let ((*package* (package-named package)))
    (leaving-no-symbols
      (let ((forms (handler-case (forms-in code)
                     (end-of-file () (refuse "Read error: unexpected end of input"))
                     (error (e) (refuse "Read error: ~A" (reader-message e))))))
        (multiple-value-bind (errors warnings notes failed) (compile-quietly forms)
          (text (out)
            (format out "Compilation ~:[successful~;FAILED~].~%" failed)
            (flet ((section (title items)
                     (when items (format out "~%~A (~D):~%~{  ~A~%~}" title (length items) items))))
              (section "Errors" errors)
              (section "Warnings" warnings)
              (section "Compiler notes" notes))
            (unless (or errors warnings notes) (format out "No warnings or notes.~%"))))))))
