;;;; compile-form: compiles code without running it. The code goes through COMPILE-FILE, because only that makes a
;;;; structure, type or macro known to the following forms. Nothing is loaded, and what the compiler has recorded is
;;;; undone; other effects of macros and EVAL-WHEN forms are not. The compiler does not signal its errors outside, so
;;;; their text is taken from its output.

(in-package "CATENARY-GUEST")

;;; The compiler records what it knows about a name in a vector of the symbol. The vector is replaced, never changed, so
;;; the old one can be restored. In releases of SBCL without it, the information about existing names is not undone.

(defun info-vector (symbol)
  (let ((reader (optional-symbol "SYMBOL-DBINFO" "SB-KERNEL")))
    (and reader (fboundp reader) (funcall reader symbol))))

(defun put-info-vector-back (symbol old)
  (let ((updater (optional-symbol "UPDATE-SYMBOL-INFO" "SB-INT")) (none (optional-symbol "+NIL-PACKED-INFOS+" "SB-INT"))
        (names (list symbol `(setf ,symbol))))
    (when (and updater (fboundp updater) none (boundp none))
      (flet ((put (vector) (funcall updater symbol (constantly (or vector (symbol-value none)))))
             (cells () (mapcar #'sb-int:find-fdefn names)))
        (let ((now (info-vector symbol)) (cells (cells)))
          (put old)
          ;; New code may call through a new cell, which a later definition must reach.
          (when (some (lambda (cell left) (and cell (not (eq cell left)))) cells (cells)) (put now)))))))

(defun function-of (symbol)
  (and (fboundp symbol) (or (macro-function symbol) (symbol-function symbol))))

(defun put-function-back (symbol old macro-p)
  (cond ((null old) (fmakunbound symbol))
        (macro-p (setf (macro-function symbol) old))
        (t (setf (symbol-function symbol) old))))

(defun class-known-p (symbol) (eq (sb-int:info :type :kind symbol) :instance))

(defstruct (known (:constructor make-known (symbol &aux (info (info-vector symbol)) (function (function-of symbol))
                                                        (macro-p (and function (macro-function symbol) t))
                                                        (bound-p (boundp symbol)) (class-p (class-known-p symbol)))))
  "What a symbol means before the code is compiled."
  info function macro-p bound-p class-p)

(defun forget-since (symbol known met-p)
  "Restore SYMBOL to KNOWN. A change of a symbol that the code does not define (MET-P) has another cause and stays."
  (let ((changed (not (eq (function-of symbol) (known-function known))))
        (bound (and (boundp symbol) (not (known-bound-p known)))))
    (unless (or (and (not changed) (not bound) (eq (info-vector symbol) (known-info known)))
                (and (not met-p) (or changed bound)))
      (when (and (class-known-p symbol) (not (known-class-p known))) (setf (find-class symbol) nil))
      (when changed (put-function-back symbol (known-function known) (known-macro-p known)))
      (put-info-vector-back symbol (known-info known))
      ;; It was made a constant.
      (when bound (ignore-errors (makunbound symbol))))))

(defun forget-new (symbol package met-p)
  (when (or met-p (not (or (boundp symbol) (fboundp symbol) (symbol-plist symbol) (class-known-p symbol))))
    (unintern symbol package)))

(defun forget-package (name)
  (let ((package (find-package name)))
    (when package
      (dolist (user (package-used-by-list package)) (unuse-package package user))
      (delete-package package))))

(defun home-symbols (package)
  (let ((found '()))
    (do-symbols (symbol package found) (when (eq (symbol-package symbol) package) (push symbol found)))))

(defun package-definition-of (form)
  (when (and (symbolp (first form)) (consp (rest form)) (typep (second form) '(or symbol string))
             (member (first form) '("DEFPACKAGE" "DEFINE-PACKAGE") :test #'string=)
             (not (find-package (second form))))
    (string (second form))))

(defun forget-definitions (packages before met)
  "Restore all symbols of PACKAGES. BEFORE has the old ones, MET those that the code defines."
  (sb-ext:without-package-locks
    (handler-bind ((warning #'muffle-warning))
      (dolist (package (remove nil packages :key #'package-name))
        (dolist (symbol (home-symbols package))
          (let ((known (gethash symbol before)) (met-p (gethash symbol met)))
            (if known (forget-since symbol known met-p) (forget-new symbol package met-p))))))))

(defun call-forgetting-definitions (function)
  "Call FUNCTION, which compiles, then undo what the compiler has recorded, and remove new names."
  (let* ((before (make-hash-table :test 'eq)) (packages (open-packages)) (met (make-hash-table :test 'eq))
         (new-packages '()) (expand *macroexpand-hook*)
         (*macroexpand-hook*
           (lambda (expander form environment)
             ;; Definitions of a file that is loaded meanwhile stay.
             (when (and (consp form) (null *load-truename*))
               (let ((name (second (definition-of form))) (package (package-definition-of form)))
                 (when name (setf (gethash (if (consp name) (second name) name) met) t))
                 (when package (push package new-packages))))
             (funcall expand expander form environment))))
    (dolist (package packages)
      (dolist (symbol (home-symbols package)) (setf (gethash symbol before) (make-known symbol))))
    (unwind-protect (funcall function)
      ;; If another evaluator has taken over, new definitions may be its own.
      (unless (and *job* (job-answered *job*))
        (forget-definitions packages before met)
        (mapc #'forget-package new-packages)))))

(defmacro forgetting-definitions (&body body)
  `(call-forgetting-definitions (lambda () ,@body)))

;;; Compiling

(defparameter *source-format* '(:utf-8 :replacement #\?) "A lone surrogate must not be an error.")

(defun call-with-source (code function)
  "Call FUNCTION with a file that contains CODE and a path for the compiled file, in a temporary folder."
  (let ((folder (merge-pathnames (format nil "catenary-~D-~36R/" (sb-unix:unix-getpid)
                                         (random (expt 36 8) (make-random-state t)))
                                 (uiop:temporary-directory))))
    (unless (sb-unix:unix-mkdir (string-right-trim "/" (native-path folder)) #o700)
      (refuse "The folder ~A could not be created" (native-path folder)))
    (unwind-protect
         (let ((source (merge-pathnames "code.lisp" folder)))
           (with-open-file (out source :direction :output :external-format *source-format*)
             (write-string code out))
           (funcall function source (merge-pathnames "code.fasl" folder)))
      (sb-ext:delete-directory folder :recursive t))))

(defun reading-failure (condition code)
  "Why CODE could not be read and where; nil if CONDITION is about something else."
  (let ((text (message-of condition)) (words "READ error during COMPILE-FILE:"))
    (when (eql (search words text) 0)
      (let ((said (string-trim '(#\Newline #\Space) (without-stream (subseq text (length words))))))
        (if (eql (search "end of file" said) 0)
            (format nil "~A~%~A" (unclosed-text code) *unclosed-hint*)
            (format nil "~{~A~^~%~}" (mapcar #'unindented (lines-of said))))))))

(defun unindented (line)
  (if (eql (search "  " line) 0) (subseq line 2) line))

(defun caught-errors (output &optional placed)
  "The error messages in the compiler's OUTPUT. PLACED gets each, and its file and top-level form if they are known."
  (let ((found '()) (current nil) (file nil) (form nil))
    (flet ((after (words line) (and (eql (search words line) 0) (subseq line (length words))))
           (message (entry)
             (destructuring-bind (file form . lines) entry
               (if placed (funcall placed (tidy-lines lines) file form) (tidy-lines lines)))))
      (dolist (line (lines-of output) (nreverse (mapcar #'message found)))
        (cond ((string= line "; caught ERROR:") (push (list file form) found) (setf current t))
              ((and current (>= (length line) 3) (string= ";  " line :end2 3))
               (push (subseq line 3) (cddr (first found))))
              (t (setf current nil
                       file (or (after "; file: " line) file)
                       form (or (after "; in: " line) form))))))))

(defun tidy-lines (lines)
  "LINES, last first, as one string without their indentation."
  (let* ((texts (remove "" (mapcar (lambda (l) (string-right-trim " " l)) (reverse lines)) :test #'string=)))
    (format nil "~{~A~^~%    ~}" (mapcar (lambda (l) (string-left-trim " " l)) texts))))

(defun own-form-deleted-p (message)
  "Whether MESSAGE is about a whole top-level form, whose error was reported already."
  (eql (search "deleting unused function (SB-C::TOP-LEVEL-FORM" message) 0))

(defun compile-time-failure (function)
  "Call FUNCTION; return the text of an unhandled error of code that runs at compile time, or nil."
  (let ((tag (list nil)) (outer sb-ext:*invoke-debugger-hook*))
    (flet ((caught (condition hook)
             (when (or (typep condition '(or storage-condition sb-sys:memory-fault-error))
                       (not (typep condition 'error)))
               (funcall outer condition hook))
             (throw tag (tidy-lines (cons "The code after it was not compiled."
                                          (reverse (lines-of (message-of condition))))))))
      (catch tag
        (let ((sb-ext:*invoke-debugger-hook* #'caught)) (funcall function))
        nil))))

(defun compile-quietly (code)
  "The errors, warnings and notes of compiling CODE, and whether it failed."
  (let ((warnings '()) (notes '()) (failed nil) (unread nil) (broken nil)
        (printed (make-string-output-stream)))
    (flet ((warned (condition)
             (unless (redefinition-p condition)
               (unless (typep condition 'style-warning) (setf failed t))
               (push (format nil "~:[~;[STYLE] ~]~A" (typep condition 'style-warning)
                             (one-line (message-of condition)))
                     warnings)))
           (noted (condition)
             (let ((message (one-line (message-of condition))))
               (unless (own-form-deleted-p message) (push message notes))))
           (compiled (source fasl)
             (let ((*error-output* printed) (*standard-output* (make-broadcast-stream)) (*read-eval* nil))
               (setf broken
                     (compile-time-failure
                      (lambda ()
                        (compile-file source :output-file fasl :verbose nil :print nil
                                             :external-format *source-format*)))))))
      (handler-bind ((warning #'warned)
                     (sb-ext:compiler-note #'noted)
                     (sb-c:compiler-error (lambda (c) (unless unread (setf unread (reading-failure c code))))))
        (call-with-source code #'compiled)))
    (when unread (refuse "Read error: ~A" unread))
    (let ((errors (append (caught-errors (get-output-stream-string printed)) (and broken (list broken)))))
      (values errors (nreverse warnings) (nreverse notes) (or failed (and errors t))))))

(deftool "compile-form" (code package)
  (let ((*package* (package-named package)))
    (multiple-value-bind (errors warnings notes failed) (forgetting-definitions (compile-quietly code))
      (text (out)
        (format out "Compilation ~:[successful~;FAILED~].~%" failed)
        (flet ((section (title items)
                 (when items (format out "~%~A (~D):~%~{  ~A~%~}" title (length items) items))))
          (section "Errors" errors)
          (section "Warnings" warnings)
          (section "Compiler notes" notes))
        (unless (or errors warnings notes) (format out "No warnings or notes.~%"))))))
