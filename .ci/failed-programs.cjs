/**
 * Prints the test files to run once more: those that failed, if all of them start programs and they are three at most;
 * otherwise nothing. Its argument is the JSON report of Vitest.
 */
const fs = require('node:fs');
const path = require('node:path');

const WITH_PROGRAMS = /^test\/(cli|client|clients|console|examples|monitoring|postgres|service)\//;
const AT_MOST = 3;

const { testResults } = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const failed = testResults
  .filter(({ status }) => status === 'failed')
  .map(({ name }) => path.relative(process.cwd(), name));
if (failed.length <= AT_MOST && failed.every((name) => WITH_PROGRAMS.test(name))) console.log(failed.join(' '));
