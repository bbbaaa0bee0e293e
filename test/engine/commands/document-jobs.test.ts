/** Older jobs of a document neither delete nor read the file that was handed in for it later. */
import {
  testImportedPageTorso,
  testImportedTorso,
  testOlderDocumentJobs,
  testPageReadAgain,
} from '../../conformance/document-jobs.ts';

testOlderDocumentJobs(() => Promise.resolve({}));
testImportedTorso(() => Promise.resolve({}));
testImportedPageTorso(() => Promise.resolve({}));
testPageReadAgain(() => Promise.resolve({}));
