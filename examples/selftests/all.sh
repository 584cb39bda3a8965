# Runs the tests of each queue discipline; prints the counts of each file, and the failures.
cp -r . /tmp/tests && cd /tmp/tests || exit
for file in tc-tests/qdiscs/*.json; do
    PYTHONPATH=lib HOME=/tmp python3 tdc.py -f "$file" > log 2>&1
    cat test-results.tap >> all.tap
    passed=$(grep '^ok' test-results.tap | grep -vc '# skipped')
    echo "$(basename "$file" .json): $passed passed, $(grep -c '^not ok' test-results.tap) failed"
done
grep '^not ok' all.tap
sha256sum all.tap
