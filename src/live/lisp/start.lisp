;;;; How a guest begins where no core is saved yet: SBCL is given this file, and after it the word GUEST or CORE, a name
;;;; for the compiled guest, a name for the core, and the sources in their order. The compiled guest is loaded if it is
;;;; there, else made; then a session begins, or a core is saved. It uses nothing of the guest until that is loaded.

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
  "A name in the folder of FASL that no other process uses."
  (format nil "~A.~D.~A.tmp" fasl (sb-unix:unix-getpid) name))

(defun join (parts whole)
  "SBCL loads compiled files that stand one after the other in one file."
  (with-open-file (out whole :direction :output :element-type '(unsigned-byte 8) :if-exists :supersede)
    (let ((buffer (make-array 65536 :element-type '(unsigned-byte 8))))
      (dolist (part parts)
        (with-open-file (in part :element-type '(unsigned-byte 8))
          (loop for count = (read-sequence buffer in)
                while (plusp count)
                do (write-sequence buffer out :end count)))))))

(defun compile-guest (fasl sources)
  "Compiles and loads each source, for the next may need it; leaves all of them as one file."
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
  (handler-case (if (probe-file fasl) (quietly #'load fasl) (error "It is not there."))
    (error ()
      ;; Absent, of another release, or damaged. Where it cannot be written, the sources will do.
      (handler-case (compile-guest fasl sources)
        (error () (dolist (source sources) (quietly #'load source :external-format :utf-8)))))))

(defun start ()
  (destructuring-bind (what fasl core &rest sources) (rest sb-ext:*posix-argv*)
    (dolist (module '(:sb-posix :sb-introspect :sb-sprof :asdf)) (quietly #'require module))
    (load-guest fasl sources)
    (if (string= what "core")
        (funcall (intern "SAVE-CORE" "CATENARY-GUEST") core)
        (funcall (intern "MAIN" "CATENARY-GUEST")))))

;; MAIN puts its own in the place of this hook.
(setf sb-ext:*invoke-debugger-hook* (lambda (condition hook) (declare (ignore hook)) (complain condition)))
(start)
