import { address, changeParams } from '../../address.ts';
import { Empty, PageHead, Tabs } from '../../parts/basics.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';
import { OneQuery } from './one-query.tsx';
import { OneWebhook } from './one-webhook.tsx';
import { Queries } from './queries.tsx';
import { Webhooks } from './webhooks.tsx';

/**
 * Shows the page of standing queries and webhooks, or the single query or webhook that the address names. Keys that are
 * bound to tags see a notice instead.
 */
export function Standing() {
  const { rest, params } = address.value;
  if ((session.value?.caller?.tags.length ?? 0) > 0) return <Empty title={texts.standing.byTags} />;
  const [id] = rest;
  const tab = params.get('tab') === 'webhooks' ? 'webhooks' : 'queries';
  if (id !== undefined) return tab === 'webhooks' ? <OneWebhook key={id} id={id} /> : <OneQuery key={id} id={id} />;
  return (
    <div class="page">
      <PageHead title={texts.standing.title} about={texts.standing.about} />
      <Tabs
        label={texts.standing.views}
        value={tab}
        onChange={(next) => changeParams({ tab: next === 'queries' ? '' : next }, { replace: true })}
        options={Object.entries(texts.standing.tabs)}
      />
      {tab === 'webhooks' ? <Webhooks /> : <Queries />}
    </div>
  );
}
