;;;; Starts a guest without a saved core. SBCL loads this file, with these arguments: "guest" or "core", the path of the
;;;; compiled guest, the path for the core, and the sources in order. It loads the compiled guest, or compiles it first,
;;;; then starts a session or saves a core.

(defpackage "CATENARY-START" (:use "COMMON-LISP"))
(in-package "CATENARY-START")

(defun complain (condition)
  (format sb-sys:*stderr* "~&The guest could not be loaded: ~A~%" condition)
  (finish-output sb-sys:*stderr*)
  (sb-ext:exit :code 70 :abort t))

(defun quietly (function &rest arguments)
  (handler-bind ((warning #'muffle-warning)
                 (sb-ext:compiler-note #'muffle-warning))
    (let ((*standard-output* (make-broadcast-stream)) (*error-output* (make-broadcast-stream))
          (*compile-verbose* nil) (*compile-print* nil))
      (apply function arguments))))

(defun beside (fasl name)
  "A temporary file next to FASL that no other process uses."
  (format nil "~A.~D.~A.tmp" fasl (sb-unix:unix-getpid) name))

(defun join (parts whole)
  "Concatenate PARTS into WHOLE. SBCL can load several compiled files from one file."
  (with-open-file (out whole :direction :output :element-type '(unsigned-byte 8) :if-exists :supersede)
    (let ((buffer (make-array 65536 :element-type '(unsigned-byte 8))))
      (dolist (part parts)
        (with-open-file (in part :element-type '(unsigned-byte 8))
          (loop for count = (read-sequence buffer in)
                while (plusp count)
                do (write-sequence buffer out :end count)))))))

(defun compile-guest (fasl sources)
  "Compile and load each source, since the next may need it, and write all of them as one file."
  (let ((parts '()) (whole (beside fasl "whole")))
    (unwind-protect
         (progn
           (loop for source in sources
                 for number from 0
                 do (let ((part (beside fasl number)))
                      (push part parts)
                      (when (nth-value 2 (quietly #'compile-file source :output-file part :external-format :utf-8))
                        (error "~A was compiled with errors." source))
                      (quietly #'load part)))
           (join (reverse parts) whole)
           (rename-file whole fasl))
      (dolist (part (cons whole parts)) (when (probe-file part) (ignore-errors (delete-file part)))))))

(defun load-guest (fasl sources)
  (handler-case (if (probe-file fasl) (quietly #'load fasl) (error "The file does not exist."))
    (error ()
      ;; Missing, of another release, or damaged. If it cannot be written, load the sources.
      (handler-case (compile-guest fasl sources)
        (error () (dolist (source sources) (quietly #'load source :external-format :utf-8)))))))

(defun start ()
  (destructuring-bind (what fasl core &rest sources) (rest sb-ext:*posix-argv*)
    (dolist (module '(:sb-posix :sb-introspect :sb-sprof :asdf)) (quietly #'require module))
    (load-guest fasl sources)
    (if (string= what "core")
        (funcall (intern "SAVE-CORE" "CATENARY-GUEST") core)
        (funcall (intern "MAIN" "CATENARY-GUEST")))))

;; MAIN replaces this hook.
(setf sb-ext:*invoke-debugger-hook* (lambda (condition hook) (declare (ignore hook)) (complain condition)))
(start)
