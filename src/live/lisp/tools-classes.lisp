;;;; class-info and find-methods. No code of the user is called: initforms are shown as written, and a class that was
;;;; never used is not finalized; its inherited slots are computed from its superclasses.

(in-package "CATENARY-GUEST")

(defun class-of-name (name package-name)
  "The class NAME, and the package for printing its names."
  (multiple-value-bind (symbol status package) (find-named name package-name)
    (let ((class (and status (find-class symbol nil))))
      (unless class (refuse "Class ~A not found in package ~A" name (package-name package)))
      (values class package))))

(defun class-title (class)
  (let ((name (class-name class)))
    (if (and name (symbolp name)) (brief name) (brief class))))

(defun slot-source (slot)
  "The initform of SLOT as written."
  (brief (sb-mop:slot-definition-initform slot) :length 10))

(defun direct-slots (class) (sb-mop:class-direct-slots class))

(defun ancestors (class)
  "The superclasses of CLASS, nearest first; works for a class that is not finalized."
  (if (sb-mop:class-finalized-p class)
      (rest (sb-mop:class-precedence-list class))
      (let ((found '()))
        (labels ((visit (c) (dolist (super (sb-mop:class-direct-superclasses c))
                              (setf found (cons super (remove super found)))
                              (visit super))))
          (visit class))
        (nreverse found))))

(defun inherited-slots (class)
  (let ((names (mapcar #'sb-mop:slot-definition-name (direct-slots class))) (found '()))
    (dolist (ancestor (ancestors class) (nreverse found))
      (dolist (slot (direct-slots ancestor))
        (unless (member (sb-mop:slot-definition-name slot) names)
          (push (sb-mop:slot-definition-name slot) names)
          (push (cons slot ancestor) found))))))

(defun slot-title (slot)
  (let ((type (sb-mop:slot-definition-type slot)))
    (format nil "~A~@[ : ~A~]" (brief (sb-mop:slot-definition-name slot)) (and (not (eq type t)) (brief type)))))

(defun structure-accessor (slot)
  "A list of the accessor that defstruct created, which is not a method."
  (let ((accessor (optional-symbol "SLOT-DEFINITION-DEFSTRUCT-ACCESSOR-SYMBOL" "SB-PCL")))
    (remove nil (list (and accessor (ignore-errors (funcall accessor slot)))))))

(defun write-slot (out slot)
  (format out "  ~A~%" (slot-title slot))
  (flet ((names (label names)
           (when names (format out "    ~A: ~{~A~^, ~}~%" label (mapcar #'brief names)))))
    (names "initargs" (sb-mop:slot-definition-initargs slot))
    (when (sb-mop:slot-definition-initfunction slot)
      (format out "    initform: ~A~%" (slot-source slot)))
    (names "readers" (or (sb-mop:slot-definition-readers slot) (structure-accessor slot)))
    (names "writers" (sb-mop:slot-definition-writers slot))
    (unless (eq (sb-mop:slot-definition-allocation slot) :instance)
      (format out "    allocation: ~A~%" (sb-mop:slot-definition-allocation slot)))))

(defun default-initargs (class)
  (if (typep class '(or standard-class sb-mop:funcallable-standard-class))
      (sb-mop:class-direct-default-initargs class)
      '()))

(deftool "class-info" (class package)
  (multiple-value-bind (found *package*) (class-of-name class package)
    (let ((supers (sb-mop:class-direct-superclasses found)) (subs (sb-mop:class-direct-subclasses found))
          (documentation (documentation found t)) (slots (direct-slots found)) (inherited (inherited-slots found)))
      (text (out)
        (format out "~A [~A]~%" (full-name (class-name found)) (class-name (class-of found)))
        (when documentation (format out "~%~A~%" documentation))
        (format out "~%Superclasses: ~:[(none)~;~:*~{~A~^, ~}~]~%" (mapcar #'class-title supers))
        (when subs (format out "Subclasses: ~{~A~^, ~}~%" (sort (mapcar #'class-title subs) #'string<)))
        (if slots (format out "~%Direct Slots (~D):~%" (length slots)) (format out "~%No direct slots~%"))
        (dolist (slot slots) (write-slot out slot))
        (when inherited
          (format out "~%Inherited Slots (~D):~%" (length inherited))
          (loop for (slot . ancestor) in inherited
                do (format out "  ~A (from ~A)~%" (slot-title slot) (class-title ancestor))))
        (when (default-initargs found)
          (format out "~%Default Initargs:~%")
          (loop for (key form) in (default-initargs found)
                do (format out "  ~A = ~A~%" (brief key) (brief form :length 10))))))))

;;; Methods

(defparameter *standard-homes* '("COMMON-LISP" "SB-PCL" "SB-MOP" "SB-KERNEL"))

(defun standard-class-p (class)
  (let* ((name (class-name class)) (package (and (symbolp name) (symbol-package name))))
    (and package (member (package-name package) *standard-homes* :test #'string=))))

(defun specializer-title (specializer)
  (if (typep specializer 'sb-mop:eql-specializer)
      (format nil "(EQL ~A)" (brief (sb-mop:eql-specializer-object specializer)))
      (class-title specializer)))

(defun method-line (method)
  (format nil "~A~{ ~A~} (~{~A~^, ~})" (brief (sb-mop:generic-function-name (sb-mop:method-generic-function method)))
          (mapcar #'brief (method-qualifiers method))
          (mapcar #'specializer-title (sb-mop:method-specializers method))))

(deftool "find-methods" (class package include-inherited)
  (multiple-value-bind (found *package*) (class-of-name class package)
    (let* ((supers (and include-inherited (ancestors found)))
           (omitted (remove-if-not #'standard-class-p supers))
           (classes (cons found (remove-if #'standard-class-p supers)))
           (methods (remove-duplicates (loop for c in classes append (sb-mop:specializer-direct-methods c))))
           (lines (sort (mapcar #'method-line (remove-if-not #'sb-mop:method-generic-function methods)) #'string<)))
      (text (out)
        (if lines
            (multiple-value-bind (shown note) (limited lines)
              (format out "~D method~:P specialized on ~A~A:~%~%~{  ~A~%~}" (length lines) (class-title found) note
                      shown))
            (format out "No methods specialized on ~A~%" (class-title found)))
        (when omitted
          (format out "~%Omitted the standard protocol inherited from ~{~A~^, ~}.~%"
                  (mapcar #'class-title omitted)))))))
