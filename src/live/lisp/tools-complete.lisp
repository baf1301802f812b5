;;;; Completion of names in code and in resources, and the resources of packages and symbols. These are requests of the
;;;; host, not tools that a model sees.

(in-package "CATENARY-GUEST")

(defparameter *completion-limit* 100)
(defparameter *package-symbols* 1000 "Exported symbols that the resource of a package lists.")

(defun constituent-p (char)
  (not (find char '(#\Space #\Newline #\Tab #\Return #\( #\) #\" #\' #\` #\, #\;))))

(defun word-start (code position)
  (let ((before (position-if-not #'constituent-p code :end position :from-end t)))
    (if before (1+ before) 0)))

(defun cased (name like)
  "NAME in lower case, unless LIKE, which the user has typed, is in upper case."
  (if (and (some #'upper-case-p like) (notany #'lower-case-p like)) name (string-downcase name)))

(defun names-with (prefix map-names)
  "The names that begin with PREFIX among those that MAP-NAMES passes to its argument, the shortest first."
  (let ((found '()) (seen (make-hash-table :test 'equal)) (length (length prefix)))
    (funcall map-names
             (lambda (name)
               (when (and (>= (length name) length) (string-equal prefix name :end2 length) (not (gethash name seen)))
                 (setf (gethash name seen) t)
                 (push name found))))
    (sort found (lambda (a b) (or (< (length a) (length b)) (and (= (length a) (length b)) (string< a b)))))))

(defun symbol-completions (word)
  (let ((colon (position #\: word)))
    (if (and colon (plusp colon))
        (let* ((package (named-package (subseq word 0 colon))) (rest (string-left-trim ":" (subseq word colon)))
               (internal (and (< (1+ colon) (length word)) (char= (char word (1+ colon)) #\:)))
               (qualifier (subseq word 0 (+ colon (if internal 2 1)))))
          (when package
            (loop for name in (names-with rest (lambda (use)
                                                 (if internal
                                                     (do-symbols (s package) (funcall use (symbol-name s)))
                                                     (do-external-symbols (s package) (funcall use (symbol-name s))))))
                  collect (concatenate 'string qualifier (cased name word)))))
        (let ((keyword (eql colon 0)) (package (session-package)))
          (loop for name in (names-with (if keyword (subseq word 1) word)
                                        (lambda (use)
                                          (if keyword
                                              (do-symbols (s (find-package "KEYWORD")) (funcall use (symbol-name s)))
                                              (progn
                                                (do-symbols (s package) (funcall use (symbol-name s)))
                                                (dolist (other (list-all-packages))
                                                  (funcall use (concatenate 'string (package-name other) ":")))))))
                collect (format nil "~:[~;:~]~A" keyword (cased name word)))))))

(defun first-of (list) (subseq list 0 (min *completion-limit* (length list))))

(define-tool "complete" (&key (code "") position)
  (let* ((position (min (or position (length code)) (length code))) (start (word-start code position))
         (word (subseq code start position)))
    (values nil :json (list :object "start" start
                                    "values" (cons :array (and (string/= word "") (first-of (symbol-completions word))))))))

(defun package-names (prefix)
  (names-with prefix (lambda (use) (dolist (package (list-all-packages)) (funcall use (package-name package))))))

(define-tool "complete-argument" (&key template argument (value "") others)
  (let* ((owner (and (search "lisp://symbol/" template) (string= argument "name") (named-package (getf others :package))))
         (found (cond ((not (string= argument "name")) (package-names value))
                      ((search "lisp://package/" template) (package-names value))
                      (owner (names-with value (lambda (use) (do-symbols (s owner) (funcall use (symbol-name s)))))))))
    (values nil :json (list :object "values" (cons :array (first-of found)) "total" (length found)))))

(defun package-text (package)
  (let ((symbols '()))
    (do-external-symbols (symbol package) (push (symbol-name symbol) symbols))
    (setf symbols (sort symbols #'string<))
    (text (out)
      (format out "Package: ~A~%" (package-name package))
      (when (documentation package t) (format out "~%~A~%" (documentation package t)))
      (format out "~@[~%Nicknames: ~{~A~^, ~}~%~]" (package-nicknames package))
      (format out "~@[~%Uses: ~{~A~^, ~}~%~]" (mapcar #'package-name (package-use-list package)))
      (format out "~%Exported symbols (~D):~%~{  ~A~%~}" (length symbols)
              (subseq symbols 0 (min *package-symbols* (length symbols))))
      (when (nthcdr *package-symbols* symbols) (format out "  ...~%")))))

(define-tool "read-resource" (&key template arguments)
  (let ((name (getf arguments :name)) (*refuse* (list nil)))
    (if (search "lisp://package/" template)
        (catch *refuse* (package-text (package-named name)))
        (funcall (gethash "describe-symbol" *tools*) :name name :package (getf arguments :package)))))
