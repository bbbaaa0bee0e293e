import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, Field, PageHead, Waiting } from '../../parts/basics.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { RecallList } from '../../types.ts';
import { usePages } from '../browse/use-pages.ts';
import { RecallTable } from './recall-table.tsx';

const PAGE = 50;

/** Shows the page of logged answers to earlier queries, the latest first, optionally of one user. */
export function Recalls() {
  const user = address.value.params.get('user_id') ?? undefined;
  const pages = usePages<RecallList['items'][number], number>(`recalls ${user}`, async (before, signal) => {
    const query = { limit: PAGE, before, user_id: user };
    const { items, next } = await send<RecallList>('GET', '/recalls', { query, signal });
    return { items, next: next ?? undefined };
  });
  return (
    <div class="page">
      <PageHead title={texts.recalls.title} about={texts.recalls.about} />
      {session.value?.caller?.user_id == null && (
        <div class="fields" role="search">
          <Field
            label={texts.fields.user}
            placeholder={texts.fields.anyone}
            value={user ?? ''}
            onChange={(next) => changeParams({ user_id: next })}
          />
        </div>
      )}
      {pages.error !== undefined && <Failed error={pages.error} retry={pages.reload} />}
      {pages.items.length === 0 && pages.isLoading && <Waiting />}
      {pages.items.length === 0 && pages.isWhole && (
        <Empty title={texts.recalls.emptyTitle}>
          <p>{texts.recalls.empty}</p>
          <a class="button" href={hrefOf('ask')}>
            {texts.ask.action}
          </a>
        </Empty>
      )}
      {pages.items.length > 0 && <RecallTable items={pages.items} />}
      {!pages.isWhole && pages.items.length > 0 && (
        <div>
          <button class="button" disabled={pages.isLoading} onClick={pages.loadMore}>
            {texts.more}
          </button>
        </div>
      )}
    </div>
  );
}
