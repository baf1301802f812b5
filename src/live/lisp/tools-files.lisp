;;;; load-file: a file of the user's into the session, as source or compiled. The compiled file goes to the temporary
;;;; folder and is deleted again: nothing is left beside the source. What loading prints comes back in the answer.

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

(defun load-compiled (file)
  (let ((fasl (merge-pathnames (format nil "catenary-~36R-~36R.fasl" (get-universal-time) (random (expt 36 8)))
                               (uiop:temporary-directory))))
    (unwind-protect
         (multiple-value-bind (output warned failed) (compile-file file :output-file fasl :verbose nil :print nil)
           (declare (ignore warned failed))
           (unless output (error "It could not be compiled"))
           (load output))
      (when (probe-file fasl) (delete-file fasl)))))

(defun note-file (file)
  "Notes what the top-level forms of FILE define. It was loaded, so reading it again makes no new names."
  (labels ((note (form)
             (follow-in-package form)
             (if (and (consp form) (member (first form) '(progn eval-when)))
                 (mapc #'note (rest form))
                 (note-definition form))))
    ;; What cannot be read this way was made by a reader of the file's own: it is not noted.
    (ignore-errors
     (let ((*package* *package*) (*readtable* (tolerant-readtable)))
       (with-open-file (stream file :external-format :utf-8)
         (loop for form = (read stream nil stream)
               until (eq form stream)
               do (note form)))))))

(deftool "load-file" (path compile package)
  (let ((*package* (package-named package)) (*readtable* *readtable*) (file (file-named path)))
    (loading (failure warnings output) (if compile (load-compiled file) (load file))
      (when failure (refuse-load "Error loading file" failure warnings output))
      (note-file file)
      (text (out)
        (format out "Loaded: ~A~%~:[~;  (compiled before loading)~%~]  in package: ~A~%" (native-path file) compile
                (package-name *package*))
        (unless warnings (format out "No warnings.~%"))
        (write-load-report out warnings output)))))
