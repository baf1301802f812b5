;;; Serves live Common Lisp sessions as CL-MCP-Server does: sbcl --load run-server.lisp
;;; The command catenary takes the place of this process, with its stdin, stdout and stderr.

(let* ((command '("catenary" "serve" "--live" "lisp" "--compat" "cl-mcp"))
       (argv (sb-alien:make-alien sb-alien:c-string (1+ (length command)))))
  (loop for index from 0
        for argument in (append command '(nil))
        do (setf (sb-alien:deref argv index) argument))
  (sb-alien:alien-funcall
   (sb-alien:extern-alien "execvp" (function sb-alien:int sb-alien:c-string (* sb-alien:c-string)))
   (first command) argv)
  (format *error-output* "The command catenary was not found; install it, or write its full path in run-server.lisp~%")
  (sb-ext:exit :code 1 :abort t))
