;;;; The ASDF tools: load-system, describe-system, system-dependencies, list-local-systems and find-system-file. Only
;;;; load-system loads and compiles systems; the others read system definitions, which also runs code (.asd files are
;;;; Lisp).

(in-package "CATENARY-GUEST")

(defun system-title (name) (string-downcase (string-trim " :\"'#" name)))

(defun find-local-system (name)
  "The .asd file of the system NAME in the session's folder, or in a folder of it. ASDF asks this last."
  (let ((title (asdf:primary-system-name name)))
    (unless (find-if (lambda (char) (find char "*?[]/")) title)
      (loop for pattern in '("~A.asd" "*/~A.asd")
            thereis (first (ignore-errors (directory (merge-pathnames (format nil pattern title) (uiop:getcwd)))))))))

(setf asdf:*system-definition-search-functions*
      (append (remove 'find-local-system asdf:*system-definition-search-functions*) '(find-local-system)))

(defun system-named (name)
  (or (handler-case (asdf:find-system (system-title name) nil)
        (error (e) (refuse "Error: System ~A cannot be read: ~A" name (one-line (message-of e)))))
      (no-system name)))

(defun findable-systems ()
  "The names of the systems that ASDF would find in its registries and in the session's folder, without SBCL's own."
  (let* ((local (loop for pattern in '("*.asd" "*/*.asd")
                      append (ignore-errors (directory (merge-pathnames pattern (uiop:getcwd))))))
         (names (append (mapcar #'pathname-name local) (mapcar #'car (systems-on-disk)))))
    (sort (remove-duplicates (remove 0 names :key (lambda (name) (search "sb-" name))) :test #'string=) #'string<)))

(defun no-system (name)
  "Refuse because there is no system NAME, with the names that are near, or else those that there are."
  (let* ((names (findable-systems))
         (known (remove-duplicates (append names (mapcar #'car (registered-systems))) :test #'string=))
         (near (near-names (system-title name) known)))
    (refuse "Error: System ~A not found~:[~*~;; did you mean ~{~A~^ or ~}?~]~:[~;~:*. The systems are: ~{~A~^, ~}~]"
            name near near (and (null near) (subseq names 0 (min 30 (length names)))))))

(defun near-names (name names)
  "At most three of NAMES that differ little from NAME."
  (let ((near (loop for other in names
                    for distance = (edit-distance name other)
                    when (<= distance (max (if (> (length name) 3) 2 1) (floor (length name) 3))) collect (cons distance other))))
    (loop for (nil . other) in (sort near #'< :key #'car) repeat 3 collect other)))

(defun edit-distance (from to)
  "How many characters must be added, removed or replaced."
  (let ((row (loop for column to (length to) collect column)))
    (loop for one across from
          do (let ((last (1+ (first row))))
               (setf row (cons last (loop for other across to
                                          for (diagonal above) on row
                                          collect (setf last (min (1+ last) (1+ above)
                                                                  (+ diagonal (if (char= one other) 0 1)))))))))
    (first (last row))))

(deftool "load-system" (system-name system)
  (let ((name (or system-name system (refuse "Give the name of the system in `system-name`"))))
    ;; An error is one of a system that cannot be read, which loading reports.
    (unless (handler-case (asdf:find-system (system-title name) nil) (error () t)) (no-system name))
    (loading (failure warnings output) (asdf:load-system (system-title name))
      (when failure (refuse-load (format nil "Error loading system ~A" name) failure warnings output))
      (note-system (system-title name))
      (text (out)
        (format out "System ~A loaded successfully.~%" name)
        (write-load-report out warnings output)))))

(defun dependency-name (dependency)
  "The name in a dependency, which may have a version or a feature; nil if it does not apply here."
  (cond ((atom dependency) (string-downcase dependency))
        ((eq (first dependency) :feature)
         (and (uiop:featurep (second dependency)) (dependency-name (third dependency))))
        (t (dependency-name (second dependency)))))

(defun dependencies-of (system)
  (remove nil (mapcar #'dependency-name (asdf:system-depends-on system))))

(defun all-dependencies (system)
  "The names of all direct and indirect dependencies of SYSTEM, sorted."
  (let ((found '()))
    (labels ((visit (name)
               (unless (member name found :test #'string=)
                 (push name found)
                 (let ((known (ignore-errors (asdf:find-system name nil))))
                   (when known (mapc #'visit (dependencies-of known)))))))
      (mapc #'visit (dependencies-of system)))
    (sort found #'string<)))

(defun author-lines (system)
  "Lines for author, maintainer, license and homepage."
  (loop for (label reader) in '(("Author" asdf:system-author) ("Maintainer" asdf:system-maintainer)
                                ("License" asdf:system-license) ("Homepage" asdf:system-homepage))
        for value = (funcall reader system)
        when value
          collect (format nil "~A: ~{~A~^, ~}" label (mapcar #'one-line (if (listp value) value (list value))))))

(deftool "describe-system" (system)
  (let* ((found (system-named system)) (needs (dependencies-of found))
         (parts (asdf:component-children found)) (file (asdf:system-source-file found)))
    (text (out)
      (format out "System: ~A~@[ (~A)~]~%" (asdf:component-name found) (asdf:component-version found))
      (when (asdf:system-description found) (format out "~%~A~%" (one-line (asdf:system-description found))))
      (format out "~@[~%~{~A~%~}~]" (author-lines found))
      (format out "~%Source: ~:[(none)~;~:*~A~]~%" (and file (native-path file)))
      (if needs
          (format out "~%Dependencies (~D): ~{~A~^, ~}~%" (length needs) needs)
          (format out "~%No dependencies~%"))
      (when parts
        (format out "~%Components (~D):~%" (length parts))
        (dolist (part parts)
          (format out "  ~A [~A]~%" (asdf:component-name part)
                  (typecase part (asdf:module "MODULE") (asdf:source-file "FILE") (t "OTHER"))))))))

(deftool "system-dependencies" (system transitive)
  (let* ((found (system-named system)) (direct (dependencies-of found)))
    (text (out)
      (format out "Dependencies for ~A:~%~%" (asdf:component-name found))
      (if direct
          (format out "Direct (~D):~%~{  ~A~%~}" (length direct) direct)
          (format out "No direct dependencies~%"))
      (when transitive
        (let ((all (all-dependencies found)))
          (format out "~%All (~D):~%~{  ~A~%~}" (length all) all))))))

;;; Where systems are

(defun systems-on-disk ()
  "The .asd files that ASDF would find, by system name: in its source registry and its central registry."
  (asdf:ensure-source-registry)
  (append
   (let ((registry (symbol-value (find-symbol "*SOURCE-REGISTRY*" "ASDF/SOURCE-REGISTRY"))))
     (and (hash-table-p registry)
          (loop for name being the hash-keys of registry using (hash-value path) collect (cons name path))))
   (loop for entry in asdf:*central-registry*
         for folder = (ignore-errors (uiop:ensure-directory-pathname (eval entry)))
         when folder
           append (loop for path in (ignore-errors (directory (merge-pathnames "*.asd" folder)))
                        collect (cons (pathname-name path) path)))))

(defun registered-systems ()
  (loop for name in (asdf:registered-systems)
        for system = (ignore-errors (asdf:find-system name nil))
        for file = (and system (asdf:system-source-file system))
        when (and system (or file (not (typep system 'asdf:require-system)))) collect (cons name file)))

(defun quicklisp-local-systems ()
  (and (find-package "QL") (find-symbol "LIST-LOCAL-SYSTEMS" "QL")
       (loop for name in (ignore-errors (call-in "QL" "LIST-LOCAL-SYSTEMS"))
             collect (cons name (ignore-errors (asdf:system-source-file (asdf:find-system name nil)))))))

(deftool "list-local-systems" ()
  (let ((systems (sort (remove-duplicates (append (registered-systems) (systems-on-disk) (quicklisp-local-systems))
                                          :key #'car :test #'string= :from-end t)
                       #'string< :key #'car)))
    (text (out)
      (format out "Local Systems (~D):~%~%" (length systems))
      (loop for (name . path) in systems
            do (format out "  ~A~%~@[    ~A~%~]" name (and path (native-path path)))))))

(deftool "find-system-file" (system)
  (let* ((found (handler-case (asdf:find-system (system-title system) nil) (error () nil)))
         (file (and found (asdf:system-source-file found))))
    (unless found (no-system system))
    (format nil "System: ~A~%Location: ~:[(built in, without a file)~;~:*~A~]" (asdf:component-name found)
            (and file (native-path file)))))
