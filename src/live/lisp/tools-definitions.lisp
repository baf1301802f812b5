;;;; list-definitions: what the session's evaluations defined and what systems it loaded, by kind. The evaluator notes
;;;; the definitions (guest-evaluate.lisp), load-file those of its file, the loading tools note systems here. What was
;;;; undone since is left out, and what was defined again is told once.

(in-package "CATENARY-GUEST")

(defshared *loaded-systems* '() "Names of the systems that tools have loaded, newest first.")

(defun note-system (name)
  (setf *loaded-systems* (cons name (remove name *loaded-systems* :test #'string=))))

(defun standing-p (type name)
  "Whether what was defined is still there."
  (cond ((member type '("function" "macro" "method") :test #'string=) (fboundp name))
        ((string= type "variable") (boundp name))
        (t (find-class name nil))))

(defun definition-detail (type name)
  (cond ((member type '("function" "macro") :test #'string=)
         (format nil " ~A" (arglist-of (or (and (symbolp name) (macro-function name) name) (fdefinition name)))))
        ((string= type "variable") (format nil " = ~A" (brief (symbol-value name))))
        ((typep (find-class name nil) '(or standard-class structure-class))
         (format nil "~@[ (~{~A~^ ~})~]"
                 (mapcar (lambda (slot) (brief (sb-mop:slot-definition-name slot)))
                         (sb-mop:class-direct-slots (find-class name)))))
        (t "")))

(defun users-method-p (method)
  "Whether METHOD is on something that is not of SBCL: on a standard generic function, the others are not the user's."
  (flet ((users-p (specializer)
           (or (typep specializer 'sb-mop:eql-specializer)
               (let ((home (and (symbolp (class-name specializer)) (symbol-package (class-name specializer)))))
                 (and home (not (sb-ext:package-locked-p home)))))))
    (some #'users-p (sb-mop:method-specializers method))))

(defun method-lines (name)
  (let ((function (fdefinition name)))
    (and (typep function 'generic-function)
         (sort (loop for method in (sb-mop:generic-function-methods function)
                     when (users-method-p method)
                       collect (format nil "  method: ~(~A~)~{ ~A~} (~{~A~^, ~})" (brief name)
                                       (mapcar #'brief (method-qualifiers method))
                                       (mapcar #'specializer-title (sb-mop:method-specializers method))))
               #'string<))))

(defun lines-for (type name)
  (cond ((not (standing-p type name)) '())
        ((string= type "method") (method-lines name))
        (t (list (format nil "  ~A: ~(~A~)~A" type (brief name) (definition-detail type name))))))

(defun definition-lines (type)
  "A line for each definition of TYPE that stands, newest first."
  (if (string= type "system")
      (loop for name in *loaded-systems* collect (format nil "  system: ~A" name))
      (loop with seen = '()
            for (kind nil name) in *definitions*
            when (and (string= kind type) (not (member name seen :test #'equal)))
              append (progn (push name seen) (lines-for type name)))))

(deftool "list-definitions" (type)
  (let ((groups (loop for (kind title) in '(("function" "Functions") ("macro" "Macros") ("variable" "Variables")
                                            ("class" "Classes") ("struct" "Structures") ("method" "Methods")
                                            ("system" "Systems"))
                      for lines = (and (or (null type) (string-equal type kind))
                                       (with-standard-shape (definition-lines kind)))
                      when lines collect (cons title lines))))
    (if (null groups)
        (format nil "No ~@[~(~A~) ~]definitions in session." type)
        (text (out)
          (format out "Session definitions:~%")
          (loop for (title . lines) in groups
                do (multiple-value-bind (shown note) (limited lines)
                     (format out "~%~A (~D)~A:~%~{~A~%~}" title (length lines) note shown)))))))
