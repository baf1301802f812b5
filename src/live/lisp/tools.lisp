;;;; Shared by the tools: resolving names, packages and code without changing the image, and printing values. A tool
;;;; never interns a name that it only looks up, and symbols interned by reading are uninterned unless they are used.
;;;; Each tools-*.lisp file has the tools of one subject.

(in-package "CATENARY-GUEST")

(defparameter *brief-length* 20)
(defparameter *brief-level* 3)
(defparameter *brief-chars* 2000)
(defparameter *list-limit* 200 "Items of one list.")

(defmacro text ((stream) &body body)
  "The text that BODY writes to STREAM, without trailing newlines."
  `(string-right-trim '(#\Newline)
                      (with-output-to-string (,stream)
                        (with-standard-shape ,@body))))

(defmacro with-standard-shape (&body body)
  `(let ((*print-pretty* nil) (*print-circle* t) (*print-readably* nil) (*print-base* 10) (*print-radix* nil)
         (*print-case* :upcase) (*print-escape* t) (*print-right-margin* 80))
     ,@body))

(defun brief (value &key (length *brief-length*) (level *brief-level*))
  "VALUE printed briefly. An error in a print method becomes part of the text."
  (let ((*print-length* length) (*print-level* level) (*print-circle* t))
    (handler-case
        (multiple-value-bind (text cut) (print-bounded *brief-chars* (lambda (stream) (prin1 value stream)))
          (if cut (concatenate 'string text "...") text))
      (error (e) (format nil "#<~A that cannot be printed: ~A>" (type-of value) (type-of e))))))

(defun message-of (condition) (string-trim '(#\Newline #\Space) (condition-text condition)))

(defun one-line (string)
  "STRING on one line, with single spaces."
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
  "The items of LIST that are shown, and a note if these are not all."
  (if (nthcdr *list-limit* list)
      (values (subseq list 0 *list-limit*) (format nil " (showing the first ~D)" *list-limit*))
      (values list "")))

(defun native-path (path)
  (if (typep path 'logical-pathname) (namestring path) (sb-ext:native-namestring path)))

(defun indented (string &optional (width 4))
  (format nil (format nil "~~{~~~D@T~~A~~^~~%~~}" width) (lines-of string)))

;;; Names

(defun package-named (name)
  "The package NAME; without a name, that of the session."
  (or (named-package (and name (string-left-trim ":" name))) (refuse "~A" (no-package name))))

(defun name-parts (name)
  "The package and the symbol name in pkg::name, pkg:name, :name or name; the package is nil if none is given."
  (let ((colon (and (not (find #\| name)) (position #\: name))))
    (cond ((null colon) (values nil (string-trim "|" name)))
          ((zerop colon) (values "KEYWORD" (string-left-trim ":" name)))
          (t (values (subseq name 0 colon) (string-left-trim ":" (subseq name colon)))))))

(defun find-named (name &optional package-name)
  "The symbol NAME, its status, and the package that was searched. Upper case is tried first, as the reader does."
  (multiple-value-bind (prefix bare) (name-parts (string-trim " '" name))
    (let ((package (package-named (or prefix package-name))))
      (multiple-value-bind (symbol status) (find-symbol (string-upcase bare) package)
        (unless status (setf (values symbol status) (find-symbol bare package)))
        (values symbol status package)))))

(defun symbol-named (name &optional package-name)
  (multiple-value-bind (symbol status package) (find-named name package-name)
    (if status symbol (refuse "Symbol ~A not found in package ~A" name (package-name package)))))

(defun full-name (thing)
  "A symbol with its package and two colons; any other name as it prints, fully qualified."
  (cond ((and (symbolp thing) (symbol-package thing))
         (format nil "~A::~A" (package-name (symbol-package thing)) (symbol-name thing)))
        ((symbolp thing) (format nil "#:~A" (symbol-name thing)))
        (t (let ((*package* (find-package "COMMON-LISP"))) (brief thing :length nil :level nil)))))

(defun call-in (package name &rest arguments)
  "Call the function NAME of a PACKAGE that may not exist when this file is compiled."
  (let ((symbol (and (find-package package) (find-symbol name package))))
    (if (and symbol (fboundp symbol))
        (apply symbol arguments)
        (refuse "Error: there is no function ~A in package ~A" name package))))

;;; Reading

(defun open-packages ()
  "The packages into which reading can intern: all unlocked ones."
  (remove-if #'sb-ext:package-locked-p (remove (find-package "KEYWORD") (list-all-packages))))

(defun unused-symbol-p (symbol)
  (flet ((nothing (kind) (member kind '(nil :unknown))))
    (and (not (boundp symbol)) (not (fboundp symbol)) (not (symbol-plist symbol)) (not (find-class symbol nil))
         (nothing (sb-int:info :variable :kind symbol)) (nothing (sb-int:info :type :kind symbol)))))

(defmacro leaving-no-symbols (&body body)
  `(call-leaving-no-symbols (lambda () ,@body)))

(defun call-leaving-no-symbols (function)
  "Call FUNCTION, then unintern the new symbols that it does not use."
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
                         (unused-symbol-p symbol))
                (push symbol new))))
          (dolist (symbol new) (unintern symbol package)))))))

(defun forms-in (code)
  "All forms in CODE, read in the current package without evaluating anything."
  (let ((*read-eval* nil))
    (with-input-from-string (stream code)
      (loop for form = (read stream nil stream) until (eq form stream) collect form))))

(defun first-form (code)
  (let ((forms (forms-in code)))
    (if forms (first forms) (refuse "There is no form to expand"))))

;;; Loading

(defmacro loading ((failure warnings output) form &body body)
  "Run FORM, then BODY with its failure or nil, its warnings and its output."
  `(multiple-value-bind (,failure ,warnings ,output) (call-loading (lambda () ,form)) ,@body))

(defun call-loading (function)
  ;; Warnings are not muffled, because ASDF and compile-file count them. What they print is left out.
  (let ((warnings '()) (*compile-verbose* nil) (*compile-print* nil) (*load-verbose* nil) (*load-print* nil))
    (flet ((note (warning)
             (unless (or (redefinition-p warning) (asdf-summary-p warning))
               (pushnew (format nil "~@[~A: ~]~:[~;[STYLE] ~]~A" (warning-place) (typep warning 'style-warning)
                                (one-line (message-of warning)))
                        warnings :test #'string=))))
      (multiple-value-bind (output noise results)
          (captured-output (lambda () (guarded (:warnings nil) (handler-bind ((warning #'note)) (funcall function)))))
        (let ((failure (and (second results) (without-loader (second results) noise))))
          (when failure (setf *last-failure* failure))
          ;; Without a failure, the compiled file signals them when it runs.
          (dolist (error (and (null failure) (caught-errors noise #'placed-error)))
            (push (format nil "[ERROR] ~A" error) warnings))
          (values failure (nreverse warnings) output))))))

(defun asdf-summary-p (warning)
  "Whether WARNING only says that a file of a system had warnings, which were reported themselves."
  (let ((type (optional-symbol "COMPILE-WARNED-WARNING" "UIOP")) (condition (optional-symbol "COMPILE-CONDITION" "UIOP")))
    (some (lambda (name) (and name (find-class name nil) (typep warning name))) (list type condition))))

(defun warning-place ()
  "The file and the line of the top-level form that is compiled, or nil. The compiler knows them, but exports neither."
  (let ((find (optional-symbol "FIND-ERROR-CONTEXT" "SB-C")))
    (flet ((part (name context)
             (let ((reader (optional-symbol name "SB-C")))
               (and context reader (fboundp reader) (ignore-errors (funcall reader context))))))
      (let* ((context (and find (fboundp find) (ignore-errors (funcall find nil))))
             (file (part "COMPILER-ERROR-CONTEXT-FILE-NAME" context))
             (position (part "COMPILER-ERROR-CONTEXT-FILE-POSITION" context))
             (line (and (typep file '(or string pathname)) (integerp position) (line-of-form file position))))
        (and line (format nil "~A:~D" (native-path (uiop:enough-pathname file (uiop:getcwd))) line))))))

(defun placed-error (message file form)
  "MESSAGE of the compiler after the file and the line of the top-level FORM, such as DEFUN APP::RUN, as far as known."
  (let* ((stream (search "on #<SB-INT:FORM-TRACKING-STREAM for \"file " message))
         (name (and stream (subseq message (+ stream 43) (position #\" message :start (+ stream 43)))))
         (path (or name file))
         (line (if name (number-after "line: " message) (and file form (line-of-definition file form)))))
    (format nil "~@[~A~]~@[:~D~]~:[~;: ~]~A" (and path (native-path (uiop:enough-pathname path (uiop:getcwd)))) line path
            (if name
                (concatenate 'string (string-right-trim " " (subseq message 0 stream))
                             (subseq message (1+ (position #\> message :start stream))))
                message))))

(defun number-after (words text)
  (let ((at (search words text :test #'char-equal)))
    (and at (parse-integer text :start (+ at (length words)) :junk-allowed t))))

(defun line-of-definition (file form)
  "The line of FORM, such as DEFUN APP::RUN, in FILE, or nil. The compiler prints no line."
  (let* ((words (split-words form)) (name (second words)))
    (ignore-errors
     (let* ((code (uiop:read-file-string file :external-format :utf-8))
            (start (search (format nil "(~A ~A" (first words)
                                   (subseq name (1+ (or (position #\: name :from-end t) -1))))
                           code :test #'char-equal)))
       (and start (1+ (count #\Newline code :end start)))))))

(defun line-of-form (file position)
  "The line of the form after POSITION in FILE, or nil if the file cannot be read."
  (ignore-errors
   (let* ((code (uiop:read-file-string file :external-format :utf-8)) (start (form-start code position)))
     (1+ (count #\Newline code :end (min start (length code)))))))

(defun loaded-form (noise)
  "The position of the failed form in a source file, from the output of LOAD, or nil."
  (let* ((words "While evaluating the form starting at ") (at (search words noise)))
    (and at (subseq noise (+ at (length words)) (position #\Newline noise :start at)))))

(defun without-loader (failure noise)
  "FAILURE without the frames from LOAD down, which belong to the tool. NOISE is the output of LOAD."
  (let ((copy (copy-failure failure)))
    (flet ((load-p (frame)
             (let ((text (shown-text frame)))
               (some (lambda (name) (search name text :end2 (min 60 (length text)))) '("(LOAD " "TOP-LEVEL-FORM")))))
      (setf (failure-frames copy) (loop for frame in (failure-frames copy) until (load-p frame) collect frame)))
    (setf (failure-message copy)
          (format nil "~A~@[~%In the form that begins at ~A.~]~{~%~A~}" (failure-message copy) (loaded-form noise)
                  (caught-errors noise #'placed-error)))
    copy))

(defun write-load-report (out warnings output)
  (when warnings (format out "~%Warnings (~D):~%~{  ~A~%~}" (length warnings) warnings))
  (when (split-words output) (format out "~%Output:~%~A~%" (string-trim '(#\Newline) output))))

(defun failure-summary (failure)
  "The message of FAILURE, and its frames, if any."
  (format nil "~A~@[~%~%[Backtrace]~{~%~A~}~]" (string-trim '(#\Newline #\Space) (failure-message failure))
          (frame-lines (failure-frames failure))))

(defun refuse-load (what failure warnings output)
  "Refuse because WHAT could not be loaded. The warnings are included, since they are often the reason."
  (refuse "~A" (text (out)
                 (format out "~A: ~A~%" what (failure-summary failure))
                 (write-load-report out warnings output))))
