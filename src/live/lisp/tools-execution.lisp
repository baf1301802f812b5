;;;; time-execution, and RUN-CODE, with which tools run the user's code: like an evaluation, with definitions and errors
;;;; recorded, but with the output in the tool's own result. The profilers (tools-profile.lisp) use it too.

(in-package "CATENARY-GUEST")

(defstruct run texts failure output timing)

(defun run-code (code package-name &optional (around #'funcall))
  "Evaluate CODE. AROUND is called with a function that does so."
  (let ((*package* (package-named package-name)) (before nil) (after nil) (texts '()))
    (multiple-value-bind (out err results)
        (captured-output
         (lambda ()
           (call-guarded
            (lambda ()
              (let ((values '()))
                (setf before (clock))
                (unwind-protect (funcall around (lambda () (setf values (evaluate-code code))))
                  (setf after (clock)))
                (setf texts (value-texts values)))))))
      (let ((failure (second results)))
        (when failure (setf *last-failure* failure))
        (make-run :texts texts :failure failure :output (joined-output out err)
                  :timing (mapcar #'- after before))))))

(defun joined-output (out err)
  "The output as an evaluation shows it, with the recorded warnings."
  (text (stream)
    (format stream "~A~:[~%~;~]" out (or (string= out "") (char= (char out (1- (length out))) #\Newline)))
    (unless (string= err "") (format stream "[stderr] ~A~%" (string-right-trim '(#\Newline) err)))
    (loop for (type message) in (and *job* (reported-warnings *job*))
          do (format stream "[Warning] ~A: ~A~%" type message))))

(defun in-milliseconds (units) (round units (/ internal-time-units-per-second 1000)))

(deftool "time-execution" (code package)
  (let ((run (run-code code package)))
    (if (run-failure run)
        (refuse "Error during execution:~%~A~@[~%~%Output:~%~A~]" (failure-text (run-failure run))
                (and (string/= (run-output run) "") (run-output run)))
        (destructuring-bind (real run-time gc bytes) (run-timing run)
          (text (out)
            (format out "Timing:~%  Real time:      ~D ms~%  Run time:       ~D ms~%  GC time:        ~D ms~%"
                    (in-milliseconds real) (in-milliseconds run-time) (in-milliseconds gc))
            (format out "  Bytes consed:   ~:D~%~%Result:~%" bytes)
            (format out "~:[  ; No values~%~;~:*~{  ~A~%~}~]" (run-texts run))
            (when (string/= (run-output run) "") (format out "~%Output:~%~A~%" (run-output run))))))))
