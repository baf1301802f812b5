;;;; profile-code, allocation-profile, profile-functions and memory-report: where time and memory go. The profilers and
;;;; their tables are SBCL's own (sb-sprof, sb-profile), cut to a number of rows.

(in-package "CATENARY-GUEST")

(defparameter *profile-rows* 50)
(defparameter *allocation-rows* 30)

(defun sampling (mode max-samples interval)
  "A function that runs code under the statistical profiler and always stops it."
  (lambda (function)
    (sb-sprof:reset)
    ;; Only the thread that runs the code: sampling all threads ended the process in SBCL 2.2.9 ("GC invariant lost").
    (sb-sprof:start-profiling :max-samples (max 1 max-samples) :mode mode :sample-interval (max 0.001 interval)
                              :threads (list sb-thread:*current-thread*))
    (unwind-protect (funcall function)
      (sb-sprof:stop-profiling))))

(defparameter *guest-rows*
  '("CATENARY-GUEST::" "SB-INT:SIMPLE-EVAL-IN-LEXENV" "SB-IMPL::%SIMPLE-EVAL" "SB-THREAD::" "SB-UNIX::BODY"
    "WITHOUT-INTERRUPTS-BODY" "WITH-MUTEX" "SB-SPROF::" "foreign function call_into_lisp" "foreign function new_thread"
    " EVAL")
  "Parts of the names of functions that run the user's code and are not part of it.")

(defun without-guest-rows (lines rows)
  "At most ROWS of the numbered LINES of a table, without those of the guest."
  (flet ((row-p (line)
           (and (digit-char-p (char (string-left-trim " " (concatenate 'string line "-")) 0))
                (not (search "elsewhere" line))))
         (guest-p (line) (some (lambda (part) (let ((at (search part line :from-end t)))
                                                (and at (or (string/= part " EVAL") (= at (- (length line) 5))))))
                               *guest-rows*)))
    (let ((count 0))
      (remove-if (lambda (line) (and (row-p line) (or (guest-p line) (> (incf count) rows)))) lines))))

(defun with-own-name (line)
  "The evaluated code itself is a function without a name."
  (let ((at (search "(LAMBDA NIL) in #<code " line)))
    (if at (format nil "~A(the evaluated code)" (subseq line 0 at)) line)))

(defun sample-report (type rows)
  "The table of the samples, or why there is none."
  (handler-case
      (string-left-trim '(#\Newline)
                        (text (out)
                          (let ((report (with-output-to-string (all)
                                          (handler-bind ((warning #'muffle-warning))
                                            (sb-sprof:report :type type :stream all
                                                             :max (if (eq type :flat) most-positive-fixnum (+ rows 40)))))))
                            (format out "~{~A~%~}"
                                    (if (eq type :flat)
                                        (mapcar #'with-own-name (without-guest-rows (lines-of report) rows))
                                        (lines-of report))))))
    (error (e) (format nil "No report: ~A" (message-of e)))))

(defun result-text (run)
  (format nil "Result: ~:[; No values~;~:*~{~A~^~%~}~]~@[~%~%Output:~%~A~]" (run-texts run)
          (and (string/= (run-output run) "") (run-output run))))

(defun choice (name choices)
  "The keyword for NAME, which is one of CHOICES; the first one if NAME is nil."
  (let ((found (find (or name (first choices)) choices :test #'string-equal)))
    (if found
        (intern (string-upcase found) "KEYWORD")
        (refuse "~A is not one of ~{~A~^, ~}" name choices))))

(deftool "profile-code" (code mode (max-samples 1000) (sample-interval 0.01) report-type package)
  (let* ((mode (choice mode '("cpu" "time" "alloc"))) (type (choice report-type '("flat" "graph")))
         (run (run-code code package (sampling mode max-samples sample-interval)))
         (report (sample-report type *profile-rows*)))
    (if (run-failure run)
        (refuse "Profiling failed: ~A~%~%~A" (failure-text (run-failure run)) report)
        (format nil "Profiling completed (mode: ~A)~%~%~A~%~%~A" mode (result-text run) report))))

(deftool "allocation-profile" (code (max-samples 1000) package)
  (let* ((run (run-code code package (sampling :alloc max-samples 0.01)))
         (report (sample-report :flat *allocation-rows*)))
    (if (run-failure run)
        (refuse "Allocation profiling failed: ~A~%~%~A" (failure-text (run-failure run)) report)
        (format nil "Allocation profiling completed~%~%~A~%~%Approximate bytes allocated: ~:D~%~%Allocation Report:~%~A"
                (result-text run) (fourth (run-timing run)) report))))

;;; Named functions

(defun profiled-names ()
  (sort (mapcar #'full-name (eval '(sb-profile:profile))) #'string<))

(defun functions-named (names package-name)
  "The functions among NAMES, and the names that are not functions."
  (let ((found '()) (missing '()))
    (dolist (name names (values (nreverse found) (nreverse missing)))
      (let ((symbol (find-named name package-name)))
        (if (and symbol (fboundp symbol) (not (macro-function symbol)) (not (special-operator-p symbol)))
            (push symbol found)
            (push name missing))))))

(defun start-profiling (names package-name)
  (unless names (refuse "Give the names of the functions to profile in `functions`"))
  (multiple-value-bind (found missing) (functions-named names package-name)
    (unless found (refuse "None of these is a function: ~{~A~^, ~}" missing))
    ;; The first time, the profiler calibrates itself and prints that.
    (captured-output (lambda () (eval '(sb-profile:unprofile)) (eval `(sb-profile:profile ,@found))))
    (text (out)
      (format out "Started profiling ~D function~:P:~%~{  ~A~%~}" (length found) (mapcar #'full-name found))
      (when missing (format out "~%Not found (~D):~%~{  ~A~%~}" (length missing) missing)))))

(deftool "profile-functions" (action functions package)
  (let ((names (profiled-names)) (action (choice action '("status" "start" "stop" "report" "reset"))))
    (flet ((titled (title) (format nil "~A~%~{  ~A~^~%~}" title names)))
      (cond ((eq action :start) (start-profiling functions package))
            ((eq action :reset) (sb-profile:reset) "Profiling statistics reset.")
            ((null names) "No functions are being profiled.")
            ((eq action :status) (titled "Currently profiling:"))
            ((eq action :stop)
             (eval '(sb-profile:unprofile))
             (titled (format nil "Stopped profiling.~%Previously profiled:")))
            (t (string-trim '(#\Newline) (nth-value 1 (captured-output #'sb-profile:report))))))))

;;; Memory

(deftool "memory-report" (verbosity gc-first)
  (let ((how (choice verbosity '("default" "detailed" "minimal"))))
    (when gc-first (sb-ext:gc :full t))
    (text (out)
      (format out "~A~%~%" (string-trim '(#\Newline)
                                        (captured-output (lambda ()
                                                           (room (ecase how
                                                                   (:default :default)
                                                                   (:detailed t)
                                                                   (:minimal nil)))))))
      (format out "GC Statistics:~%  Run time: ~,2F ms~%  Total bytes consed: ~:D~%"
              (/ sb-ext:*gc-run-time* (/ internal-time-units-per-second 1000)) (sb-ext:get-bytes-consed))
      (when gc-first (format out "  (GC was run before this report)~%")))))
