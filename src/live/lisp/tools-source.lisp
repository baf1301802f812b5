;;;; get-source: the text of a definition, as it was evaluated in the session or as its file has it. get-stack: where the
;;;; running evaluation is; the main thread answers it while the evaluator is busy.

(in-package "CATENARY-GUEST")

(defconstant +max-file-chars+ 5000000 "Characters of a file in which a definition is looked up.")
(defconstant +stack-seconds+ 1 "How long the evaluator may take to describe its stack.")

(defparameter *definition-types* '(:function :generic-function :method :macro :compiler-macro :setf-expander :variable
                                   :constant :symbol-macro :class :structure :condition :type))

(defun session-sources (symbol)
  "Kind and text of each definition of SYMBOL that was evaluated in the session."
  (loop for (kind name . rest) being the hash-keys of *sources* using (hash-value text)
        when (and (eq symbol (if (consp name) (second name) name)) (or rest (defined-p kind name)))
          collect (list kind text)))

(defun file-text (path)
  (with-open-file (in path :external-format '(:utf-8 :replacement #\?))
    (let* ((text (make-string (min (file-length in) +max-file-chars+))) (end (read-sequence text in)))
      (subseq text 0 end))))

(defun form-end (text start)
  "The index after the form that begins at START."
  (or (ignore-errors
       (with-input-from-string (stream text :start start)
         (let ((*read-suppress* t)) (read stream))
         (min (length text) (+ start (file-position stream)))))
      (length text)))

(defun form-at (text source)
  "The text of the top-level form of SOURCE in the TEXT of its file, and its line; nil if its place is not known."
  (let* ((offset (sb-introspect:definition-source-character-offset source))
         (number (first (sb-introspect:definition-source-form-path source)))
         (start (cond (offset (form-start text (min offset (length text))))
                      (number (loop for at = (form-start text 0) then (form-start text (form-end text at))
                                    repeat number
                                    finally (return at))))))
    (when (and start (< start (length text)))
      (values (string-right-trim '(#\Space #\Newline) (subseq text start (form-end text start)))
              (line-and-column text start)))))

(defun file-sources (symbol)
  "For each definition of SYMBOL in a file: kind, path, line or nil, text or nil, and whether the file has changed."
  (let ((found '()))
    (dolist (type *definition-types* (nreverse found))
      (dolist (source (ignore-errors (sb-introspect:find-definition-sources-by-name symbol type)))
        (let* ((path (sb-introspect:definition-source-pathname source)) (file (and path (ignore-errors (probe-file path))))
               (date (sb-introspect:definition-source-file-write-date source)))
          (when path
            (multiple-value-bind (text line)
                (when file (form-at (file-text file) source))
              (pushnew (list (string-downcase type) (native-path path) line text
                             (and file date (> (file-write-date file) date)))
                       found :test #'equal :key #'cdr))))))))

(deftool "get-source" (name package)
  (let* ((symbol (symbol-named name package)) (session (session-sources symbol)) (files (limited (file-sources symbol))))
    (unless (or session files)
      (refuse "The source of ~A is not known: it was not defined by an evaluation or by a file that was loaded."
              (full-name symbol)))
    (text (out)
      (loop for (kind text) in session
            do (format out ";; ~A ~A, evaluated in this session~%~A~%~%" kind (full-name symbol) text))
      (loop for (kind path line text changed) in files
            do (format out ";; ~A ~A, ~A~@[:~D~]~:[~; (the file has changed since it was loaded)~]~%" kind
                       (full-name symbol) path line changed)
               (format out "~:[;; Its text cannot be found there.~%~;~:*~A~%~%~]" text)))))

(defun running-stack (job)
  "The frames of JOB, which runs in the evaluator; nil and T if it does not answer."
  (let ((done (sb-thread:make-semaphore)) (frames '()))
    (sb-thread:interrupt-thread (evaluator-thread *evaluator*)
                                (lambda ()
                                  (when (eq *job* job) (setf frames (ignore-errors (user-frames :safe))))
                                  (sb-thread:signal-semaphore done)))
    (if (sb-thread:wait-on-semaphore done :timeout +stack-seconds+) (values frames nil) (values '() t))))

(defun stack-text (job)
  (multiple-value-bind (frames silent) (ignore-errors (running-stack job))
    (cond (silent "The evaluation does not answer: it has disabled interrupts, or waits in foreign code.")
          (frames (format nil "~A has run for ~,1F seconds. Its stack:~{~%~A~}" (job-op job)
                          (/ (milliseconds (job-started job) (now)) 1000.0) (frame-lines frames)))
          (t "The evaluation has no frames of yours now."))))

(deftool "get-stack" ()
  (if (held-here)
      "Nothing runs: the evaluation waits at an error, whose frames get-backtrace shows."
      "Nothing runs in this session."))
