;;;; load-file: loads a file into the session, as source or compiled. The compiled file is in the temporary folder and
;;;; is deleted afterwards. The output of loading is part of the result.

(in-package "CATENARY-GUEST")

(defun file-named (path)
  (let ((file (ignore-errors (probe-file (sb-ext:parse-native-namestring (expand-home path))))))
    (cond ((null file) (refuse "Error loading file: File not found: ~A" path))
          ((null (pathname-name file)) (refuse "Error loading file: ~A is a folder" path))
          (t file))))

(defun expand-home (path)
  (if (and (> (length path) 1) (string= "~/" path :end2 2))
      (concatenate 'string (sb-ext:native-namestring (user-homedir-pathname)) (subseq path 2))
      path))

(defun temporary-fasl ()
  "A path that no other session uses. All sessions start from one core, so they need a new random state."
  (merge-pathnames (format nil "catenary-~D-~36R.fasl" (sb-unix:unix-getpid) (random (expt 36 8) (make-random-state t)))
                   (uiop:temporary-directory)))

(defun call-with-compiled (file function)
  (let ((fasl (temporary-fasl)))
    (unwind-protect
         (multiple-value-bind (output warned failed) (compile-file file :output-file fasl :verbose nil :print nil)
           (declare (ignore warned failed))
           (unless output (error "The file could not be compiled"))
           (funcall function output))
      (when (probe-file fasl) (delete-file fasl)))))

(deftool "load-file" (path compile package)
  (let* ((*package* (package-named package)) (*readtable* *readtable*) (file (file-named path)) (*noting* file)
         (begun nil))
    (flet ((load-it (file) (setf begun t) (load file)))
      (loading (failure warnings output) (if compile (call-with-compiled file #'load-it) (load-it file))
        (when failure
          (when begun
            (setf (failure-message failure)
                  (format nil "~A~%The forms before the one that failed were loaded." (failure-message failure))))
          (refuse-load "Error loading file" failure warnings output))
        (text (out)
          (format out "Loaded: ~A~%~:[~;  (compiled before loading)~%~]  in package: ~A~%" (native-path file) compile
                  (package-name *package*))
          (unless warnings (format out "No warnings.~%"))
          (write-load-report out warnings output))))))
