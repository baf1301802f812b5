;;;; quickload and quicklisp-search, for a session in which Quicklisp was loaded (by the user's own code, or by a core
;;;; of the user's). Its functions are looked up by name when a tool is called: where they are absent, the answer says
;;;; whether Quicklisp is installed, and what the user can do.

(in-package "CATENARY-GUEST")

(defun quicklisp-p () (and (find-package "QL") (find-symbol "QUICKLOAD" "QL") t))

(defun without-quicklisp ()
  "What is missing, and what the user can do."
  (let ((setup (merge-pathnames "quicklisp/setup.lisp" (user-homedir-pathname))))
    (if (ignore-errors (probe-file setup))
        (format nil "Quicklisp is not loaded in this session; load it by load-file with the path ~A" setup)
        (format nil "Quicklisp is not installed (there is no ~A); install it from https://www.quicklisp.org/ and load ~
                     its setup.lisp by load-file, or load a system of this machine by load-system" setup))))

(deftool "quickload" (system verbose)
  (unless (quicklisp-p) (refuse "Error loading ~A: ~A" system (without-quicklisp)))
  (let ((before (asdf:registered-systems)))
    (loading (failure warnings output)
        (call-in "QL" "QUICKLOAD" (system-title system) :silent (not verbose))
      (when failure (refuse-load (format nil "Error loading ~A" system) failure warnings output))
      (note-system (system-title system))
      (let ((new (sort (set-difference (asdf:registered-systems) before :test #'string=) #'string<)))
        (text (out)
          (format out "~A loaded successfully.~%" system)
          (when new (format out "~%Newly registered systems (~D):~%~{  ~A~%~}" (length new) new))
          (write-load-report out warnings (if verbose output "")))))))

(deftool "quicklisp-search" (pattern (limit 30))
  (unless (quicklisp-p) (refuse "Error: ~A" (without-quicklisp)))
  (let* ((names (loop for system in (call-in "QL" "SYSTEM-LIST")
                      collect (if (stringp system) system (call-in "QL-DIST" "NAME" system))))
         (found (sort (remove-if-not (lambda (name) (search pattern name :test #'char-equal)) names) #'string<))
         (count (length found)))
    (text (out)
      (if found
          (format out "Found ~D system~:P matching '~A'~@[ (the first ~D are shown)~]:~%~%~{  ~A~%~}" count pattern
                  (and (> count limit) limit) (subseq found 0 (min limit count)))
          (format out "No systems found matching '~A'" pattern)))))
