;;;; The seven telos tools: the intent of a program, if the library telos is loaded and features are declared. The
;;;; functions of telos are looked up by name when a tool is called. Four outcomes are distinguished: telos is missing
;;;; or failed, no such name, several such names, found.

(in-package "CATENARY-GUEST")

(defparameter *max-similar-names* 5)

(defun telos (name &rest arguments)
  "Call a function of telos. Its error is reported, never taken for an empty result."
  (let ((symbol (find-symbol name "TELOS")))
    (unless (and symbol (fboundp symbol))
      (refuse "Telos failed while answering: it provides no ~(~A~). It is too old, or only partly loaded." name))
    (handler-case (apply symbol arguments)
      (error (e) (refuse "Telos failed while answering, inside ~(~A~): ~A" name (message-of e))))))

(defmacro deftelos (name parameters &body body)
  `(deftool ,name ,parameters
     (unless (find-package "TELOS")
       (refuse "Telos is not loaded in this image. Load it first, for example with load-system telos,~@
                and then load the system whose features you want to ask about."))
     ,@body))

;;; Names

(defun similar-names (name candidates)
  "Some of CANDIDATES that are similar to NAME."
  (let ((needle (string-trim ":" (subseq name (1+ (or (position #\: name :from-end t) -1))))))
    (and (> (length needle) 1)
         (loop with found = 0
               for symbol in candidates
               when (and (< found *max-similar-names*)
                         (or (search needle (symbol-name symbol) :test #'char-equal)
                             (search (symbol-name symbol) needle :test #'char-equal)))
                 collect (full-name symbol) and do (incf found)))))

(defun refuse-unknown (what name candidates count)
  (refuse "No ~A named ~A.~%Telos is loaded and ~D feature~:P ~:*~[are~;is~:;are~] registered.~@[~%Closest matches: ~
           ~{~A~^, ~}~]~%Use telos-list-features to see what is registered."
          what name count (similar-names name candidates)))

(defun only-match (what name found)
  (if (rest found)
      (refuse "The name ~A is ambiguous: ~D ~As share it.~%~{  ~A~%~}Qualify it with a package, such as \"~A\"."
              name (length found) what (mapcar #'full-name found) (full-name (first found)))
      (first found)))

(defun feature-named (name)
  (let ((features (telos "LIST-FEATURES")))
    (multiple-value-bind (prefix bare) (name-parts name)
      (let ((found (remove-if-not (lambda (symbol)
                                    (and (string-equal bare (symbol-name symbol))
                                         (or (null prefix) (string= prefix "KEYWORD")
                                             (eq (find-package (string-upcase prefix)) (symbol-package symbol)))))
                                  features)))
        (or (only-match "feature" name found)
            (refuse-unknown "feature" name features (length features)))))))

(defun intended-symbol (name package-name)
  "The symbol NAME that has an intent: in its package first, else in any package if only one has it."
  (multiple-value-bind (prefix bare) (name-parts name)
    (let* ((package (and (or prefix package-name) (package-named (or prefix package-name))))
           (near (multiple-value-list (find-named bare (package-name (or package *package*)))))
           (all (find-all-symbols (string-upcase bare))))
      (flet ((intended (symbol) (telos "GET-INTENT" symbol)))
        (cond ((and (second near) (intended (first near))) (first near))
              (package (let ((features (telos "LIST-FEATURES")))
                         (refuse-unknown "symbol with an intent" name (remove-if-not #'intended all)
                                         (length features))))
              (t (or (only-match "symbol" name (remove-if-not #'intended all))
                     (let ((features (telos "LIST-FEATURES")))
                       (refuse-unknown "symbol with an intent" name features (length features))))))))))

;;; Output

(defun part (intent name) (telos (concatenate 'string "INTENT-" name) intent))

(defun shown (value)
  "A string as it is, any other value printed readably."
  (if (stringp value) value (brief value)))

(defun write-points (out label points)
  (when points
    (format out "~A:~%" label)
    (dolist (point points)
      (if (consp point)
          (format out "  ~A: ~A~%" (first point) (second point))
          (format out "  ~A~%" point)))
    (terpri out)))

(defun write-intent (out intent)
  (loop for (label name) in '(("Purpose" "PURPOSE") ("Role" "ROLE") ("Belongs to" "BELONGS-TO"))
        for value = (part intent name)
        when value do (format out "~A: ~A~%~%" label (shown value)))
  (loop for (label name) in '(("Goals" "GOALS") ("Constraints" "CONSTRAINTS") ("Assumptions" "ASSUMPTIONS")
                              ("Failure Modes" "FAILURE-MODES"))
        do (write-points out label (part intent name))))

(deftelos "telos-list-features" (filter)
  (let ((features (if filter (telos "LIST-FEATURES" filter) (telos "LIST-FEATURES"))))
    (text (out)
      (cond (features
             (format out "Features (~D):~%~%" (length features))
             (dolist (feature features)
               (let ((intent (telos "FEATURE-INTENT" feature)))
                 (format out "~A~%~@[  Purpose: ~A~%~]~@[  Parent: ~S~%~]~%" (shown feature)
                         (and intent (part intent "PURPOSE")) (and intent (part intent "BELONGS-TO"))))))
            (filter (format out "Telos is loaded, but no feature matches '~A'." filter))
            (t (format out "Telos is loaded, but no features are registered. Load a system that declares some."))))))

(deftelos "telos-feature-intent" (feature)
  (let* ((symbol (feature-named feature)) (intent (telos "FEATURE-INTENT" symbol)))
    (text (out)
      (format out "Feature: ~S~%~%" symbol)
      (if intent (write-intent out intent) (format out "It is registered, but has no intent recorded.")))))

(deftelos "telos-get-intent" (name package)
  (let ((symbol (intended-symbol name package)))
    (text (out)
      (format out "~S (~A)~%~%" symbol
              (cond ((find-class symbol nil) "class") ((fboundp symbol) "function") (t "symbol")))
      (write-intent out (telos "GET-INTENT" symbol)))))

(deftelos "telos-intent-chain" (name package)
  (let ((chain (telos "INTENT-CHAIN" (intended-symbol name package))))
    (text (out)
      (format out "Intent Chain (~D level~:P):~%~%" (length chain))
      (loop for entry in chain
            for number from 1
            do (format out "~D. [~(~A~)] ~A~%" number (getf entry :type) (shown (getf entry :name)))
               (format out "~@[   Role: ~A~%~]~@[   Purpose: ~A~%~]~@[   Failure modes: ~{~A~^, ~}~%~]~%"
                       (getf entry :role) (getf entry :purpose)
                       (mapcar (lambda (mode) (if (consp mode) (first mode) mode)) (getf entry :failure-modes)))))))

(deftelos "telos-feature-members" (feature)
  (let* ((symbol (feature-named feature)) (members (telos "FEATURE-MEMBERS" symbol)) (any nil))
    (text (out)
      (format out "Members of ~S:~%~%" symbol)
      (loop for (label key) in '(("Functions" :functions) ("Classes" :classes) ("Structs" :structs)
                                 ("Conditions" :conditions) ("Methods" :methods) ("Sub-features" :features))
            for items = (getf members key)
            when items
              do (setf any t)
                 (format out "~A (~D):~%~{  ~A~%~}~%" label (length items) (mapcar #'shown items)))
      (unless any (format out "(none)")))))

(defun decision (name decision) (telos (concatenate 'string "DECISION-" name) decision))

(deftelos "telos-feature-decisions" (feature)
  (let* ((symbol (feature-named feature)) (decisions (telos "FEATURE-DECISIONS" symbol)))
    (text (out)
      (format out "Decisions for ~S (~D):~%~%" symbol (length decisions))
      (loop for one in decisions
            for number from 1
            do (format out "~D. ~:[(unnamed)~;~:*~A~]~%~@[   Chose: ~A~%~]~@[   Over: ~{~A~^, ~}~%~]" number
                       (decision "ID" one) (decision "CHOSE" one) (decision "OVER" one))
               (format out "~@[   Because: ~A~%~]~@[   Decided by: ~A~%~]~@[   Date: ~A~%~]~%"
                       (decision "BECAUSE" one) (decision "DECIDED-BY" one) (decision "DATE" one)))
      (unless decisions (format out "(none recorded)")))))

(deftelos "telos-list-decisions" ()
  (let ((all (telos "LIST-DECISIONS")))
    (text (out)
      (format out "Decisions across ~D feature~:P (~D total):~%~%" (length all)
              (reduce #'+ all :key (lambda (entry) (length (rest entry)))))
      (loop for (feature . decisions) in all
            do (format out "~A (~D):~%" (shown feature) (length decisions))
               (dolist (one decisions)
                 (format out "  ~:[(unnamed)~;~:*~A~]: chose ~A~@[ over ~{~A~^, ~}~]~%" (decision "ID" one)
                         (decision "CHOSE" one) (decision "OVER" one)))
               (terpri out)))))
