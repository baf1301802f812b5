;;;; quickload and quicklisp-search, for a session in which Quicklisp was loaded (by the user's own code, or by a core
;;;; of the user's). Its functions are looked up by name when a tool is called: where they are absent, the answer says
;;;; that Quicklisp is not available.

(in-package "CATENARY-GUEST")

(defun quicklisp-p () (and (find-package "QL") (find-symbol "QUICKLOAD" "QL") t))

(deftool "quickload" (system verbose)
  (unless (quicklisp-p) (refuse "Error loading ~A: Quicklisp is not available" system))
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
  (unless (quicklisp-p) (refuse "Error: Quicklisp is not available"))
  (let* ((names (loop for system in (call-in "QL" "SYSTEM-LIST")
                      collect (if (stringp system) system (call-in "QL-DIST" "NAME" system))))
         (found (sort (remove-if-not (lambda (name) (search pattern name :test #'char-equal)) names) #'string<))
         (count (length found)))
    (text (out)
      (if found
          (format out "Found ~D system~:P matching '~A'~@[ (the first ~D are shown)~]:~%~%~{  ~A~%~}" count pattern
                  (and (> count limit) limit) (subseq found 0 (min limit count)))
          (format out "No systems found matching '~A'" pattern)))))
