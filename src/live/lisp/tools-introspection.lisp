;;;; describe-symbol and apropos-search: what a name means, and which names exist. They change nothing: no name is
;;;; interned, and no function of the user is called except to print a value, within short limits.

(in-package "CATENARY-GUEST")

(defun variable-p (symbol)
  (or (boundp symbol) (member (sb-int:info :variable :kind symbol) '(:special :constant :global))))

(defun kinds-of (symbol)
  "What SYMBOL names, the most important kind first."
  (or (remove nil
              (list (cond ((macro-function symbol) "MACRO")
                          ((special-operator-p symbol) "SPECIAL-OPERATOR")
                          ((not (fboundp symbol)) nil)
                          ((typep (fdefinition symbol) 'generic-function) "GENERIC-FUNCTION")
                          (t "FUNCTION"))
                    (and (find-class symbol nil) "CLASS")
                    (and (not (keywordp symbol)) (variable-p symbol) "VARIABLE")))
      '("SYMBOL")))

(defun kind-matches (symbol type)
  (or (null type)
      (member type (kinds-of symbol) :test #'string-equal)
      (and (string-equal type "function") (intersection '("GENERIC-FUNCTION") (kinds-of symbol) :test #'string=))))

(defun documentation-of (symbol)
  (loop for type in '(function type variable setf compiler-macro)
        thereis (ignore-errors (documentation symbol type))))

(defun source-of (symbol)
  "The file that defines SYMBOL, with the character offset of the form."
  (loop for type in '(:macro :generic-function :function :special-operator :class :structure :condition :variable)
        for source = (first (ignore-errors (sb-introspect:find-definition-sources-by-name symbol type)))
        for path = (and source (sb-introspect:definition-source-pathname source))
        when path
          return (format nil "~A~@[ (character ~D)~]" (native-path path)
                         (sb-introspect:definition-source-character-offset source))))

(defun arglist-of (function)
  "The lambda list of FUNCTION as text."
  (let ((*print-length* nil) (*print-level* nil))
    (format nil "~:[()~;~:*~S~]" (sb-introspect:function-lambda-list function))))

(deftool "describe-symbol" (name package)
  (multiple-value-bind (symbol status home) (find-named name package)
    (unless status
      (refuse "Symbol ~A not found in package ~A (status: NIL)" name (package-name home)))
    (let ((kinds (kinds-of symbol)) (documentation (documentation-of symbol)) (source (source-of symbol)))
      (text (out)
        (format out "~A [~A]~%" (full-name symbol) (first kinds))
        (when (rest kinds) (format out "  Also: ~{~A~^, ~}~%" (rest kinds)))
        (when (fboundp symbol) (format out "  Arglist: ~A~%" (arglist-of symbol)))
        (when (boundp symbol) (format out "  Value: ~A~%" (brief (symbol-value symbol))))
        (when documentation (format out "  Documentation:~%~A~%" (indented documentation)))
        (cond (source (format out "  Source: ~A~%" source))
              ((find-if (lambda (definition) (and (eq (second definition) symbol) (apply #'defined-p definition)))
                        *definitions*) (format out "  Source: defined in this session~%")))))))

(defun hidden-packages (package-name)
  "Packages that are not searched: the guest's own, and keywords unless they were asked for."
  (cons (find-package "CATENARY-GUEST") (and (null package-name) (list (find-package "KEYWORD")))))

(defun symbols-matching (pattern package-name type)
  "Without a package: the exported symbols of all packages, and the symbols of the session's current package."
  (let ((seen (make-hash-table :test 'eq)) (hidden (hidden-packages package-name)))
    (flet ((consider (symbol)
             (when (and (search pattern (symbol-name symbol) :test #'char-equal)
                        (not (member (symbol-package symbol) hidden))
                        (kind-matches symbol type))
               (setf (gethash symbol seen) t))))
      (if package-name
          (do-symbols (symbol (package-named package-name)) (consider symbol))
          (progn
            (dolist (package (list-all-packages))
              (do-external-symbols (symbol package) (consider symbol)))
            (do-symbols (symbol *package*)
              (when (eq (symbol-package symbol) *package*) (consider symbol))))))
    (sort (loop for symbol being the hash-keys of seen collect symbol)
          (lambda (a b)
            (if (string= (symbol-name a) (symbol-name b))
                (string< (full-name a) (full-name b))
                (string< (symbol-name a) (symbol-name b)))))))

(deftool "apropos-search" (pattern package type)
  (let ((found (symbols-matching pattern package type)))
    (multiple-value-bind (shown note) (limited found)
      (text (out)
        (format out "Found ~D symbol~:P matching '~A'~A:~%~%" (length found) pattern note)
        (dolist (symbol shown)
          (format out "  ~A [~A]~%" (full-name symbol) (first (kinds-of symbol))))))))
