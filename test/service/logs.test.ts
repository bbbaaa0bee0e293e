import { expect, test } from 'vitest';
import { startWithProvider } from '../support/provider-service.ts';

test('a request and its job are found in the log by the ids that the caller knows', async () => {
  const { service, provider } = await startWithProvider({ OM_LOG_LEVEL: 'debug' });
  provider.setMode('refuse_text', { marker: 'poison' });
  const headers = { 'x-request-id': 'a-request.of-mine' };
  const { body } = await service.request('POST', '/memory/add', { body: { content: 'poison' }, headers });
  const failed = await service.logged('job_failed');
  expect(failed).toMatchObject({
    thread: 'worker',
    jobId: body.job_id,
    step: 'encode',
    code: 'invalid',
    state: 'dead',
  });
  // Another thread writes the line of the request.
  await expect
    .poll(() => service.log.filter(({ msg, route }) => msg === 'request' && route === '/memory/add'))
    .toEqual([
      expect.objectContaining({ requestId: 'a-request.of-mine', jobId: body.job_id, method: 'POST', status: 202 }),
    ]);
});
