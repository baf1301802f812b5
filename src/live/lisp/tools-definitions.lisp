;;;; list-definitions: what evaluations and load-file have defined, and the systems that were loaded, by kind. The
;;;; evaluator records definitions (guest-evaluate.lisp). Removed definitions are left out, and repeated ones are listed
;;;; once.

(in-package "CATENARY-GUEST")

(defshared *loaded-systems* '() "Systems that tools have loaded, newest first.")

(defun note-system (name)
  (setf *loaded-systems* (cons name (remove name *loaded-systems* :test #'string=))))

(defun definition-detail (type name)
  (cond ((member type '("function" "macro") :test #'string=)
         (format nil " ~A" (arglist-of (or (and (symbolp name) (macro-function name) name) (fdefinition name)))))
        ((string= type "variable")
         (cond ((eq (variable-kind name) :macro) (format nil " = ~A" (brief (macroexpand-1 name))))
               ((boundp name) (format nil " = ~A" (brief (symbol-value name))))
               (t " (unbound)")))
        ((member type '("class" "struct" "condition") :test #'string=)
         (format nil "~@[ (~{~A~^ ~})~]"
                 (mapcar (lambda (slot) (brief (sb-mop:slot-definition-name slot)))
                         (sb-mop:class-direct-slots (find-class name)))))
        (t "")))

(defun method-lines (name)
  (sort (loop for method in (users-methods name)
              collect (format nil "  method: ~(~A~)~{ ~A~} (~{~A~^, ~})" (brief name)
                              (mapcar #'brief (method-qualifiers method))
                              (mapcar #'specializer-title (sb-mop:method-specializers method))))
        #'string<))

(defun lines-for (type name)
  (cond ((not (defined-p type name)) '())
        ((string= type "method") (method-lines name))
        (t (list (format nil "  ~A: ~(~A~)~A" type (brief name) (definition-detail type name))))))

(defun definition-lines (type)
  "A line for each existing definition of TYPE, newest first."
  (if (string= type "system")
      (loop for name in *loaded-systems* collect (format nil "  system: ~A" name))
      (loop for (kind name) in *definitions*
            when (string= kind type) append (lines-for type name))))

(deftool "list-definitions" (type)
  (let ((groups (loop for (kind title) in '(("function" "Functions") ("macro" "Macros") ("variable" "Variables")
                                            ("class" "Classes") ("condition" "Conditions") ("struct" "Structures")
                                            ("method" "Methods") ("type" "Types") ("setf" "Setf expanders")
                                            ("compiler-macro" "Compiler macros") ("system" "Systems"))
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
