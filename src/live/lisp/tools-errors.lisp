;;;; describe-last-error and get-backtrace: the last error of the session, which was recorded while its stack existed
;;;; (guest-backtrace.lisp). The restarts are listed, but can no longer be invoked.

(in-package "CATENARY-GUEST")

(defun no-failure ()
  "No error recorded in this session. Run some code that causes an error first.")

(deftool "describe-last-error" ()
  (let ((failure *last-failure*))
    (if (null failure)
        (no-failure)
        (text (out)
          (format out "[ERROR] ~A~%~A~%" (failure-type failure) (failure-message failure))
          (when (failure-restarts failure)
            (format out "~%[Restarts]~%")
            (loop for (name . words) in (failure-restarts failure)
                  for number from 0
                  do (format out "  ~D: [~:[unnamed~;~:*~A~]] ~A~%" number name words)))
          (when (failure-frames failure)
            (format out "~%[Backtrace]~%~{~A~%~}" (frame-lines (failure-frames failure))))))))

(deftool "get-backtrace" ((max-frames 20))
  (let ((failure *last-failure*))
    (if (null failure)
        (no-failure)
        (let ((frames (subseq (failure-frames failure) 0 (min (max max-frames 0) (length (failure-frames failure))))))
          (text (out)
            (format out "Backtrace (~D frame~:P):~%~%" (length frames))
            (loop for frame in frames
                  for number from 0
                  do (format out "Frame ~D:~%  ~A~%~{~A~%~}~%" number (shown-text frame) (local-lines frame))))))))
