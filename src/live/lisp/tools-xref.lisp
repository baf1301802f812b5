;;;; who-calls and who-references: where a function or a variable is used, as recorded by the compiler. The callers of a
;;;; macro are the places where it was expanded; references to a variable read, set or bind it. SBCL does not record
;;;; calls by a name that is computed at run time (funcall of a symbol).

(in-package "CATENARY-GUEST")

(defparameter *unknown-file* (sb-ext:parse-native-namestring "a file that failed to load"))

(defstruct reference name file count kinds)

(defun xref (find symbol)
  "Call FIND, a function of sb-introspect, with SYMBOL. It fails if a caller is from a file that failed to load and so
has no position; then it is called again with a placeholder for such positions."
  (handler-case (funcall find symbol)
    (error ()
      (let ((source (optional-symbol "FIND-FUNCTION-DEFINITION-SOURCE" "SB-INTROSPECT"))
            (nowhere (optional-symbol "MAKE-DEFINITION-SOURCE" "SB-INTROSPECT")))
        (sb-int:encapsulate source 'catenary (lambda (function &rest arguments)
                                               (handler-case (apply function arguments)
                                                 (error () (funcall nowhere :pathname *unknown-file*)))))
        (unwind-protect (funcall find symbol)
          (sb-int:unencapsulate source 'catenary))))))

(defun user-name (name)
  "The name of a caller without the compiler's wrappers, which differ between releases of SBCL."
  (if (atom name)
      name
      (let ((head (and (symbolp (first name)) (symbol-name (first name)))))
        (cond ((member head '("FAST-METHOD" "SLOW-METHOD") :test #'equal) (cons 'method (rest name)))
              ((member head '("XEP" "TL-XEP" "&OPTIONAL-PROCESSOR" "&MORE-PROCESSOR" "VARARGS-ENTRY") :test #'equal)
               (user-name (second name)))
              (t name)))))

(defun own-name-p (name)
  "Whether NAME belongs to the guest, which calls many functions itself."
  (let ((ours (find-package "CATENARY-GUEST")))
    (labels ((own (x) (cond ((symbolp x) (eq (symbol-package x) ours))
                            ((consp x) (or (own (car x)) (own (cdr x)))))))
      (own name))))

(defun references (&rest kinds)
  "The callers that sb-introspect knows, each once. KINDS are a word and the matching entries in turn. The user's own
callers come first, then those of SBCL."
  (let ((found (make-hash-table :test 'equal)))
    (loop for (kind entries) on kinds by #'cddr
          do (loop for (raw . source) in entries
                   for name = (user-name raw)
                   for path = (sb-introspect:definition-source-pathname source)
                   for file = (and path (native-path path))
                   unless (own-name-p name)
                     do (let ((reference (or (gethash (list name file) found)
                                             (setf (gethash (list name file) found)
                                                   (make-reference :name name :file file :count 0 :kinds '())))))
                          (incf (reference-count reference))
                          (pushnew kind (reference-kinds reference) :test #'equal))))
    (sort (loop for reference being the hash-values of found collect (cons (reference-key reference) reference))
          #'string< :key #'car)))

(defun reference-key (reference)
  "The sort key."
  (let ((file (reference-file reference)))
    (format nil "~:[0~;1~] ~A" (and file (eql 0 (search "SYS:" file))) (full-name (reference-name reference)))))

(defun references-text (symbol references one none note)
  "The text of either tool: ONE is the word for a reference, NONE the text if there is none."
  (multiple-value-bind (shown more) (limited references)
    (text (out)
      (if references
          (format out "~D ~A ~A~A:~%~%" (length references) (format nil one (length references)) symbol more)
          (format out "~A ~A" none symbol))
      (loop for (nil . reference) in shown
            do (format out "  ~A~@[ (~A)~]~%" (full-name (reference-name reference)) (funcall note reference))
               (format out "~:[    defined in this session (not from a file)~;~:*    at ~A~]~%"
                       (reference-file reference))))))

(deftool "who-calls" (name package)
  (let ((symbol (symbol-named name package)))
    (references-text symbol
                 (references "calls" (xref (if (macro-function symbol)
                                           #'sb-introspect:who-macroexpands
                                           #'sb-introspect:who-calls)
                                       symbol))
                 "caller~P of" "No callers found for"
                 (lambda (reference)
                   (and (> (reference-count reference) 1)
                        (format nil "~D call sites" (reference-count reference)))))))

(deftool "who-references" (name package)
  (let ((symbol (symbol-named name package)))
    (references-text symbol
                 (references "reads" (xref #'sb-introspect:who-references symbol)
                         "sets" (xref #'sb-introspect:who-sets symbol)
                         "binds" (xref #'sb-introspect:who-binds symbol))
                 "reference~P to" "No references found for"
                 (lambda (reference)
                   (and (not (equal (reference-kinds reference) '("reads")))
                        (format nil "~{~A~^, ~}" (reverse (reference-kinds reference))))))))
