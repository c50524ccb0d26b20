import { line } from "../state/words";

/** What a result carries, where it carries anything: `untrusted`, `private`. */
export const Labels = ({ of: { labels } }: { of: { labels: readonly string[] } }) =>
  labels.map((each) => <span key={each} className="tag" title="What its result carries">{line(each, 24)}</span>);
