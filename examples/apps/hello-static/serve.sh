#!/bin/sh
# The first process of a container ignores SIGTERM unless it says what to do with it, and httpd does not.
httpd -f -v -p 8080 -h /site &
trap 'kill $!' TERM
wait $!
