import { test } from 'tap'
import { rolesMark } from '../engines/postgres-dump.js'
import { RoleFinder } from '../engines/postgres-roles.js'

function found(text: string, pieceBytes: number): string[] {
  const finder = new RoleFinder()
  const bytes = Buffer.from(text)
  const roles: string[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes)
    roles.push(...finder.look(bytes.subarray(at, at + pieceBytes)))
  return roles
}

const dump = `
--
-- Name: stock; Type: DATABASE; Schema: -; Owner: one
--
CREATE DATABASE stock WITH TEMPLATE = template0 ENCODING = 'UTF8';
ALTER DATABASE stock OWNER TO one;
\\connect stock
ALTER ROLE two IN DATABASE stock SET work_mem TO '5MB';
ALTER TABLE public."a OWNER TO b" OWNER TO "Th""ree, é";
--
-- Name: told(); Type: FUNCTION; Schema: public; Owner: one
--
CREATE FUNCTION public.told() RETURNS text LANGUAGE sql AS $$ select '
COPY public.kept (n, t) FROM stdin;
' $$;
ALTER FUNCTION public.told() OWNER TO fourteen;
--
-- Data for Name: kept; Type: TABLE DATA; Schema: public; Owner: one
--
COPY public.kept (n, t) FROM stdin;
ALTER TABLE kept OWNER TO nobody1;
\\\\.
.
\\.


--
-- Data for Name: empty; Type: TABLE DATA; Schema: public; Owner: one
--
COPY public.empty (n) FROM stdin;
\\.

GRANT SELECT ON TABLE public.kept TO four WITH GRANT OPTION;
REVOKE ALL ON TABLE public.kept FROM five;
SET SESSION AUTHORIZATION six;
GRANT SELECT(n),UPDATE(n) ON TABLE public.kept TO PUBLIC;
RESET SESSION AUTHORIZATION;
ALTER DEFAULT PRIVILEGES FOR ROLE seven IN SCHEMA public GRANT SELECT ON TABLES TO eight;
CREATE POLICY some ON public.kept TO nine, "Ten" USING ((n > 0));
CREATE USER MAPPING FOR eleven SERVER far OPTIONS (
ALTER EVENT TRIGGER mine OWNER TO twelve;
ALTER PUBLICATION everything OWNER TO one;
${'x'.repeat(40_000)} OWNER TO nobody2;
ALTER SCHEMA kept OWNER TO pg_database_owner;
GRANT x TO none, public;
alter database postgres owner to thirteen;
grant connect on database postgres to "four teen" with grant option;
`

void test('the roles that a dump names are found, however it is cut into pieces', async t => {
  for (const pieceBytes of [1, 7, 1024, 1_000_000])
    t.same(
      found(dump, pieceBytes),
      [
        'one',
        'two',
        'Th"ree, é',
        'fourteen',
        'four',
        'five',
        'six',
        'seven',
        'eight',
        'nine',
        'Ten',
        'eleven',
        'twelve',
        'thirteen',
        'four teen'
      ],
      `${pieceBytes}`
    )
})

void test('a dump that has its roles itself is not looked at, and no flood of names is held', async t => {
  t.same(found(`${rolesMark}\n${dump}`, 100), [])
  const flood = Array.from({ length: 5000 }, (_, n) => `ALTER TABLE t OWNER TO r${n};\n`).join('')
  t.equal(found(flood, 4096).length, 1000)
})
