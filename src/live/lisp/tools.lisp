;;;; What the tools share: how names, packages and code are resolved without leaving a trace in the image, and how
;;;; values are shown. A tool never interns a name that it only looks up, and what reading had to intern is taken out
;;;; again unless something came of it. The tools themselves stand in the other tools-*.lisp files, a subject each.

(in-package "CATENARY-GUEST")

(defvar *refuse* nil "What a refusal throws to.")

(defun refuse (control &rest arguments)
  "Upstream the tool: it could not do what was asked, for the reason given."
  (throw *refuse* (values (apply #'format nil control arguments) :error t)))

(defmacro deftool (name parameters &body body)
  "A tool of keyword PARAMETERS whose BODY returns the text of the answer, or refuses."
  `(define-tool ,name (&key ,@parameters)
     (let ((*refuse* (list nil))) (catch *refuse* (values (progn ,@body))))))

(defparameter *brief-length* 20)
(defparameter *brief-level* 3)
(defparameter *brief-chars* 2000)
(defparameter *list-limit* 200 "Items of one list; a model that wants more can ask for less.")

(defmacro text ((stream) &body body)
  "The text that BODY writes to STREAM, without the newlines at its end."
  `(string-right-trim '(#\Newline)
                      (with-output-to-string (,stream)
                        (with-standard-shape ,@body))))

(defmacro with-standard-shape (&body body)
  `(let ((*print-pretty* nil) (*print-circle* t) (*print-readably* nil) (*print-base* 10) (*print-radix* nil)
         (*print-case* :upcase) (*print-escape* t) (*print-right-margin* 80))
     ,@body))

(defun brief (value &key (length *brief-length*) (level *brief-level*))
  "VALUE as it prints, short; a print method that fails is said and not passed on."
  (let ((*print-length* length) (*print-level* level) (*print-circle* t))
    (handler-case
        (multiple-value-bind (text cut) (print-bounded *brief-chars* (lambda (stream) (prin1 value stream)))
          (if cut (concatenate 'string text "...") text))
      (error (e) (format nil "#<~A that cannot be printed: ~A>" (type-of value) (type-of e))))))

(defun message-of (condition) (string-trim '(#\Newline #\Space) (condition-text condition)))

(defun one-line (string)
  "STRING with every run of white space as one space."
  (let ((words (split-words string)))
    (format nil "~{~A~^ ~}" words)))

(defun split-words (string)
  (loop with start = nil
        for i from 0 to (length string)
        for blank = (or (= i (length string)) (member (char string i) '(#\Space #\Newline #\Tab #\Return)))
        when (and blank start) collect (subseq string start i) and do (setf start nil)
        when (and (not blank) (not start)) do (setf start i)))

(defun lines-of (string)
  (loop with start = 0
        for end = (position #\Newline string :start start)
        collect (subseq string start end)
        while end do (setf start (1+ end))))

(defun limited (list)
  "The first of LIST, as many as are shown; and a note that these are not all, or nothing."
  (if (nthcdr *list-limit* list)
      (values (subseq list 0 *list-limit*) (format nil " (the first ~D are shown)" *list-limit*))
      (values list "")))

(defun native-path (path)
  (if (typep path 'logical-pathname) (namestring path) (sb-ext:native-namestring path)))

(defun indented (string &optional (width 4))
  (format nil (format nil "~~{~~~D@T~~A~~^~~%~~}" width) (lines-of string)))

;;; Names

(defun package-named (name)
  "The package NAME; without a name the one the session is in."
  (or (named-package (and name (string-left-trim ":" name))) (refuse "~A" (no-package name))))

(defun name-parts (name)
  "The package and the symbol name in pkg::name, pkg:name, :name or name; the package is nil where none is named."
  (let ((colon (and (not (find #\| name)) (position #\: name))))
    (cond ((null colon) (values nil (string-trim "|" name)))
          ((zerop colon) (values "KEYWORD" (string-left-trim ":" name)))
          (t (values (subseq name 0 colon) (string-left-trim ":" (subseq name colon)))))))

(defun find-named (name &optional package-name)
  "The symbol NAME and its status; in upper case first, as the reader has it. Third, the package it was looked for in."
  (multiple-value-bind (prefix bare) (name-parts (string-trim " '" name))
    (let ((package (package-named (or prefix package-name))))
      (multiple-value-bind (symbol status) (find-symbol (string-upcase bare) package)
        (unless status (setf (values symbol status) (find-symbol bare package)))
        (values symbol status package)))))

(defun symbol-named (name &optional package-name)
  (multiple-value-bind (symbol status package) (find-named name package-name)
    (if status symbol (refuse "Symbol ~A not found in package ~A" name (package-name package)))))

(defun full-name (thing)
  "A symbol with its package, always by two colons; any other name as it prints, fully qualified."
  (cond ((and (symbolp thing) (symbol-package thing))
         (format nil "~A::~A" (package-name (symbol-package thing)) (symbol-name thing)))
        ((symbolp thing) (format nil "#:~A" (symbol-name thing)))
        (t (let ((*package* (find-package "COMMON-LISP"))) (brief thing :length nil :level nil)))))

(defun call-in (package name &rest arguments)
  "Call the function NAME of a PACKAGE that may not be there when this file is compiled."
  (let ((symbol (and (find-package package) (find-symbol name package))))
    (if (and symbol (fboundp symbol))
        (apply symbol arguments)
        (refuse "Error: ~A is not there in package ~A" name package))))

;;; Reading

(defun open-packages ()
  "The packages into which reading can intern: all that are not locked."
  (remove-if #'sb-ext:package-locked-p (remove (find-package "KEYWORD") (list-all-packages))))

(defun nothing-came-of (symbol)
  (flet ((nothing (kind) (member kind '(nil :unknown))))
    (and (not (boundp symbol)) (not (fboundp symbol)) (not (symbol-plist symbol)) (not (find-class symbol nil))
         (nothing (sb-int:info :variable :kind symbol)) (nothing (sb-int:info :type :kind symbol)))))

(defmacro leaving-no-symbols (&body body)
  `(call-leaving-no-symbols (lambda () ,@body)))

(defun call-leaving-no-symbols (function)
  "Call FUNCTION, then take out again what it interned and did nothing with."
  (let ((before (make-hash-table :test 'eq)) (packages (open-packages)))
    (dolist (package packages)
      (do-symbols (symbol package)
        (when (eq (symbol-package symbol) package) (setf (gethash symbol before) t))))
    (unwind-protect (funcall function)
      (dolist (package packages)
        (let ((new '()))
          (when (package-name package)
            (do-symbols (symbol package)
              (when (and (eq (symbol-package symbol) package) (not (gethash symbol before))
                         (nothing-came-of symbol))
                (push symbol new))))
          (dolist (symbol new) (unintern symbol package)))))))

(defun forms-in (code)
  "All forms in CODE, read in the current package; nothing is evaluated by reading."
  (let ((*read-eval* nil))
    (with-input-from-string (stream code)
      (loop for form = (read stream nil stream) until (eq form stream) collect form))))

(defun first-form (code)
  (let ((forms (forms-in code)))
    (if forms (first forms) (refuse "There is no form to expand"))))

;;; Loading

(defmacro loading ((failure warnings output) form &body body)
  "FORM, with its failure or nil, its warnings, and what it printed; none of that is the tool's own answer."
  `(multiple-value-bind (,failure ,warnings ,output) (call-loading (lambda () ,form)) ,@body))

(defun call-loading (function)
  ;; The warnings are not muffled: ASDF and compile-file count them to know a failure. What they print is left out.
  (let ((warnings '()) (*compile-verbose* nil) (*compile-print* nil) (*load-verbose* nil) (*load-print* nil))
    (flet ((note (warning)
             (unless (typep warning 'style-warning)
               (pushnew (one-line (message-of warning)) warnings :test #'string=))))
      (multiple-value-bind (output noise results)
          (captured-output (lambda () (guarded (:warnings nil) (handler-bind ((warning #'note)) (funcall function)))))
        (let ((failure (and (second results) (without-loader (second results) noise))))
          (when failure (setf *last-failure* failure))
          (values failure (nreverse warnings) output))))))

(defun loaded-form (noise)
  "Where in a source file the form begins that failed, from what LOAD has printed; nil where it has not."
  (let* ((words "While evaluating the form starting at ") (at (search words noise)))
    (and at (subseq noise (+ at (length words)) (position #\Newline noise :start at)))))

(defun without-loader (failure noise)
  "FAILURE with the frames above the first that is of LOAD: those below it are the tool's. NOISE was printed meanwhile."
  (let ((copy (copy-failure failure)))
    (flet ((load-p (frame)
             (some (lambda (name) (search name frame :end2 (min 60 (length frame)))) '("(LOAD " "TOP-LEVEL-FORM"))))
      (setf (failure-frames copy) (loop for frame in (failure-frames copy) until (load-p frame) collect frame)))
    (setf (failure-message copy)
          (format nil "~A~@[~%In the form that begins at ~A.~]" (failure-message copy) (loaded-form noise)))
    copy))

(defun write-load-report (out warnings output)
  (when warnings (format out "~%Warnings (~D):~%~{  ~A~%~}" (length warnings) warnings))
  (when (split-words output) (format out "~%Output:~%~A~%" (string-trim '(#\Newline) output))))

(defun why (failure)
  "The message of FAILURE, and its frames where the user's code has some."
  (format nil "~A~@[~%~%[Backtrace]~{~%~A~}~]" (string-trim '(#\Newline #\Space) (failure-message failure))
          (loop for frame in (failure-frames failure) for number from 0 collect (format nil "~D: ~A" number frame))))

(defun refuse-load (what failure warnings output)
  "WHAT could not be loaded. The warnings are often the reason, so they are told too."
  (refuse "~A" (text (out)
                 (format out "~A: ~A~%" what (why failure))
                 (write-load-report out warnings output))))
