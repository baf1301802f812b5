;;;; describe-last-error and get-backtrace: the last error of the session, which was recorded while its stack existed
;;;; (guest-backtrace.lisp). list-restarts and close-error: the open error (guest-hold.lisp).

(in-package "CATENARY-GUEST")

(defun no-failure ()
  "No error recorded in this session. Run some code that causes an error first.")

(deftool "describe-last-error" ()
  (let ((failure *last-failure*))
    (if (null failure)
        (no-failure)
        (text (out)
          (format out "[ERROR] ~A~%~A~%" (failure-type failure) (whole-message failure))
          (when (failure-restarts failure)
            (format out "~%[Restarts]~%~{  ~A~%~}" (offer-lines (failure-restarts failure))))
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

(deftool "list-restarts" ()
  (let* ((failure (held-failure (open-error))) (offers (failure-restarts failure)))
    (text (out)
      (format out "[ERROR] ~A~%~A~%~%" (failure-type failure) (whole-message failure))
      (if offers
          (format out "[Restarts]~%~{~A~%~}" (offer-lines offers))
          (format out "It offers no restarts; the next evaluation closes it.")))))

(deftool "close-error" ()
  "The error is closed.")
