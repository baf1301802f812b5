;;;; One of the files of the system garden; it prints while it loads.

(defpackage :garden
  (:use :cl)
  (:export #:bed #:bed-name #:water))

(in-package :garden)

(defstruct bed name)

(defun water (bed)
  "Water one bed."
  (format nil "~A is wet" (bed-name bed)))

(format t "The beds are laid.~%")
