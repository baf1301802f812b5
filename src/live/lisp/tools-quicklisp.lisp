;;;; quickload and quicklisp-search, for sessions in which Quicklisp is loaded. Its functions are looked up by name when
;;;; a tool is called; if they are missing, the result says whether Quicklisp is installed and what to do.

(in-package "CATENARY-GUEST")

(defun quicklisp-p () (and (find-package "QL") (find-symbol "QUICKLOAD" "QL") t))

(defun without-quicklisp ()
  "Says what is missing and what to do."
  (let ((setup (merge-pathnames "quicklisp/setup.lisp" (user-homedir-pathname))))
    (if (ignore-errors (probe-file setup))
        (format nil "Quicklisp is not loaded in this session; load ~A with load-file" setup)
        (format nil "Quicklisp is not installed (there is no ~A); install it from https://www.quicklisp.org/ and load ~
                     its setup.lisp with load-file, or load a system of this machine with load-system" setup))))

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
          (format out "Found ~D system~:P matching '~A'~@[ (showing the first ~D)~]:~%~%~{  ~A~%~}" count pattern
                  (and (> count limit) limit) (subseq found 0 (min limit count)))
          (format out "No systems found matching '~A'" pattern)))))
