;;;; who-calls and who-references: where a function or a variable is used, as the compiler recorded it. A macro's
;;;; callers are the places where it was expanded; a variable's references are those that read, set and bind it.
;;;; Calls of functions by a name made at run time (funcall of a symbol) are not recorded by SBCL and not found.

(in-package "CATENARY-GUEST")

(defparameter *lost-place* (sb-ext:parse-native-namestring "a file that failed while it was loaded"))

(defstruct place name file count ways)

(defun xref (find symbol)
  "What FIND of sb-introspect tells of SYMBOL. A function from a file whose loading failed half-way has no position,
and sb-introspect fails for all when it meets one: then once more, and such functions are told apart."
  (handler-case (funcall find symbol)
    (error ()
      (let ((source (later "FIND-FUNCTION-DEFINITION-SOURCE" "SB-INTROSPECT"))
            (nowhere (later "MAKE-DEFINITION-SOURCE" "SB-INTROSPECT")))
        (sb-int:encapsulate source 'catenary (lambda (function &rest arguments)
                                               (handler-case (apply function arguments)
                                                 (error () (funcall nowhere :pathname *lost-place*)))))
        (unwind-protect (funcall find symbol)
          (sb-int:unencapsulate source 'catenary))))))

(defun user-name (name)
  "The name of a caller without the compiler's own wrappers, whose names differ between releases of SBCL."
  (if (atom name)
      name
      (let ((head (and (symbolp (first name)) (symbol-name (first name)))))
        (cond ((member head '("FAST-METHOD" "SLOW-METHOD") :test #'equal) (cons 'method (rest name)))
              ((member head '("XEP" "TL-XEP" "&OPTIONAL-PROCESSOR" "&MORE-PROCESSOR" "VARARGS-ENTRY") :test #'equal)
               (user-name (second name)))
              (t name)))))

(defun own-name-p (name)
  "Whether NAME is of this guest's machinery, which has its own calls of everything."
  (let ((ours (find-package "CATENARY-GUEST")))
    (labels ((own (x) (cond ((symbolp x) (eq (symbol-package x) ours))
                            ((consp x) (or (own (car x)) (own (cdr x)))))))
      (own name))))

(defun places (&rest ways)
  "The callers that sb-introspect knows, each once; WAYS are a word and one of its functions' answers in turn. The
user's own come first, and then those in SBCL itself."
  (let ((found (make-hash-table :test 'equal)))
    (loop for (way entries) on ways by #'cddr
          do (loop for (raw . source) in entries
                   for name = (user-name raw)
                   for path = (sb-introspect:definition-source-pathname source)
                   for file = (and path (native-path path))
                   unless (own-name-p name)
                     do (let ((place (or (gethash (list name file) found)
                                         (setf (gethash (list name file) found)
                                               (make-place :name name :file file :count 0 :ways '())))))
                          (incf (place-count place))
                          (pushnew way (place-ways place) :test #'equal))))
    (sort (loop for place being the hash-values of found collect (cons (place-key place) place)) #'string< :key #'car)))

(defun place-key (place)
  "By what places are sorted."
  (let ((file (place-file place)))
    (format nil "~:[0~;1~] ~A" (and file (eql 0 (search "SYS:" file))) (full-name (place-name place)))))

(defun places-text (symbol places one none note)
  "The text of either tool: ONE is what a place is called, NONE what is said where there is none."
  (multiple-value-bind (shown more) (limited places)
    (text (out)
      (if places
          (format out "~D ~A ~A~A:~%~%" (length places) (format nil one (length places)) symbol more)
          (format out "~A ~A" none symbol))
      (loop for (nil . place) in shown
            do (format out "  ~A~@[ (~A)~]~%" (full-name (place-name place)) (funcall note place))
               (format out "~:[    defined in this session (not from a file)~;~:*    at ~A~]~%" (place-file place))))))

(deftool "who-calls" (name package)
  (let ((symbol (symbol-named name package)))
    (places-text symbol
                 (places "calls" (xref (if (macro-function symbol)
                                           #'sb-introspect:who-macroexpands
                                           #'sb-introspect:who-calls)
                                       symbol))
                 "caller~P of" "No callers found for"
                 (lambda (place)
                   (and (> (place-count place) 1) (format nil "~D call sites" (place-count place)))))))

(deftool "who-references" (name package)
  (let ((symbol (symbol-named name package)))
    (places-text symbol
                 (places "reads" (xref #'sb-introspect:who-references symbol)
                         "sets" (xref #'sb-introspect:who-sets symbol)
                         "binds" (xref #'sb-introspect:who-binds symbol))
                 "reference~P to" "No references found for"
                 (lambda (place)
                   (and (not (equal (place-ways place) '("reads")))
                        (format nil "~{~A~^, ~}" (reverse (place-ways place))))))))
