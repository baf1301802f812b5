;;;; A system for the transcripts: a little of everything that the ASDF tools tell of.

(defsystem "garden"
  :version "1.2.0"
  :description "Beds and what grows in them."
  :author "A. Gardener"
  :license "MIT"
  :depends-on ("garden-soil" (:version "garden-tools" "0.1"))
  :components ((:file "beds")
               (:module "plants" :components ((:file "rose")))
               (:static-file "notes.txt")))
