;;;; A stub of the library telos for the telos tools: two features of a garden, one that shares its name with another, a
;;;; function with an intent, and two decisions. One request makes it fail.

(defpackage :telos
  (:use :cl)
  (:export #:list-features #:feature-intent #:get-intent #:intent-chain #:feature-members #:feature-decisions
           #:list-decisions))

(in-package :telos)

(defstruct intent purpose role belongs-to goals constraints assumptions failure-modes)
(defstruct decision id chose over because decided-by date)

(defvar *known*
  (list (cons 'cl-user::garden
              (make-intent :purpose "Grow food" :goals '((:yield "Enough for four"))
                           :constraints '((:water "Rain only"))))
        (cons 'cl-user::watering
              (make-intent :purpose "Keep beds wet" :belongs-to 'cl-user::garden :assumptions '((:rain "It rains"))
                           :failure-modes '((:drought "Everything dries" :violates :yield))))
        (cons 'telos::watering (make-intent :purpose "The other one"))))

(defvar *things*
  (list (cons 'cl-user::water
              (make-intent :role "Pours" :purpose "Wet one bed" :belongs-to 'cl-user::watering
                           :failure-modes '((:leak "It leaks"))))))

(defvar *decisions*
  (list (cons 'cl-user::watering
              (list (make-decision :id :can :chose "A can" :over '("A hose" "Rain") :because "It is quiet"
                                   :decided-by "All" :date "2026-01-05")
                    (make-decision :chose "Evenings")))))

(defun list-features (&optional filter)
  (loop for (name . intent) in *known*
        when (or (null filter)
                 (search filter (symbol-name name) :test #'char-equal)
                 (search filter (intent-purpose intent) :test #'char-equal))
          collect name))

(defun feature-intent (name) (cdr (assoc name *known*)))

(defun get-intent (name) (cdr (assoc name *things*)))

(defun intent-chain (name)
  (let ((intent (get-intent name)))
    (list (list :type :function :name name :role (intent-role intent) :purpose (intent-purpose intent)
                :failure-modes (intent-failure-modes intent))
          (list :type :feature :name 'cl-user::watering :purpose "Keep beds wet"))))

(defun feature-members (name)
  (case name
    (cl-user::watering (list :functions '(cl-user::water) :classes nil))
    (telos::watering (error "The registry is broken"))
    (t (list :features '(cl-user::watering)))))

(defun feature-decisions (name) (cdr (assoc name *decisions*)))

(defun list-decisions () *decisions*)

(defun cl-user::water () 1)
