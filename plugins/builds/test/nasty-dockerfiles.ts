/** A Dockerfile that tries to reach the image of somebody else, or that engines read in different ways. */
interface Nasty {
  readonly title: string
  readonly text: string
  /** Where it is refused before the engine is asked. */
  readonly line?: number
  /** Absent: it is understood, and refused by whose image it names. */
  readonly reason?: RegExp
}

interface Victim {
  /** `sha256:…` of 64 digits. */
  readonly id: string
  readonly name: string
}

const show = 'RUN cat /secret\n'

export function nasty({ id, name }: Victim): readonly Nasty[] {
  const hex = id.slice('sha256:'.length)
  const cut = Math.ceil(name.length / 2)
  const [head, tail] = [name.slice(0, cut), name.slice(cut)]
  return [
    { title: 'by its name', text: `FROM ${name}\n${show}` },
    { title: 'by its name, in a variable', text: `ARG X=${head}\nFROM \${X}${tail}\n${show}` },
    {
      title: 'by its name, in several ARGs of a line',
      text: `ARG Y=1 X=${head} Z=${tail}\nFROM $X$Z\n${show}`
    },
    { title: 'by its name, in an alternative', text: `FROM \${NOTHING:-${name}}\n${show}` },
    { title: 'by its name, escaped in an ARG', text: `ARG X=\\${name}\nFROM $X\n${show}` },
    { title: 'by its name, over two lines', text: `FROM ${head}\\\n${tail}\n${show}` },
    {
      title: 'by its name, with a comment between two lines',
      text: `FROM \\\n# a comment\n\n  ${name}\n${show}`
    },
    {
      title: 'by its name, in COPY --from',
      text: `FROM busybox:lab\nCOPY --from=${name} /secret /secret\n${show}`
    },
    {
      title: 'by its name, in a stage whose name is shown as another',
      text: `FROM ${name} AS a\nFROM busybox:lab\nCOPY --from=a /secret /secret\n${show}`
    },
    {
      title: 'by its name, in a trigger',
      text: `FROM busybox:lab AS a\nONBUILD COPY --from=${name} /secret /secret\nFROM a\n${show}`
    },
    {
      title: 'by its name with the host of the default registry',
      text: `FROM docker.io/library/${name}\n${show}`
    },
    { title: 'by its whole id', text: `FROM ${id}\n${show}` },
    { title: 'by the digits of its id', text: `FROM ${hex}\n${show}` },
    { title: 'by the first twelve digits of its id', text: `FROM ${hex.slice(0, 12)}\n${show}` },
    { title: 'by the first two digits of its id', text: `FROM ${hex.slice(0, 2)}\n${show}` },
    { title: 'by the beginning of its id', text: `FROM sha256:${hex.slice(0, 6)}\n${show}` },
    {
      title: 'by its id, in COPY --from',
      text: `FROM busybox:lab\nCOPY --from=${id} /secret /secret\n${show}`
    },
    {
      title: 'by a part of its id, in COPY --from',
      text: `FROM busybox:lab\nCOPY --from=a${hex.slice(0, 7)} /secret /secret\nCOPY --from=${hex.slice(0, 12)} /secret /secret\n${show}`
    },
    { title: 'by its id as a digest', text: `FROM ${name.split(':')[0] ?? ''}@${id}\n${show}` },
    {
      title: 'by the id of a part of it, over a trigger',
      text: `FROM busybox:lab AS a\nONBUILD COPY --from=${id} /secret /secret\nFROM a\n${show}`
    },

    {
      title: 'a name in quotes',
      text: `FROM "${name}"\n${show}`,
      line: 1,
      reason: /without quotes and escapes/
    },
    {
      title: 'two digits of an id in quotes',
      text: `FROM "${hex.slice(0, 2)}"\n${show}`,
      line: 1,
      reason: /without quotes and escapes/
    },
    {
      title: 'a name in other quotes',
      text: `FROM '${name}'\n${show}`,
      line: 1,
      reason: /without quotes and escapes/
    },
    {
      title: 'quotes within a name',
      text: `FROM ${head}""${tail}\n${show}`,
      line: 1,
      reason: /without quotes and escapes/
    },
    {
      title: 'an escape within a name',
      text: `FROM \\${name}\n${show}`,
      line: 1,
      reason: /without quotes and escapes/
    },
    {
      title: 'another escape within a name',
      text: `# escape=\`\nFROM \`${name}\n${show}`,
      line: 2,
      reason: /without quotes and escapes/
    },
    {
      title: 'quotes in --from',
      text: `FROM busybox:lab\nCOPY --from="${name}" /secret /secret\n${show}`,
      line: 2,
      reason: /without quotes and escapes/
    },
    {
      title: 'quotes around --from',
      text: `FROM busybox:lab\nCOPY "--from=${name}" /secret /secret\n${show}`
    },
    {
      title: 'quotes within --from',
      text: `FROM busybox:lab\nCOPY --fr"om"=${name} /secret /secret\n${show}`,
      line: 2,
      reason: /COPY has no flag/
    },
    {
      title: 'an escape in --from',
      text: `FROM busybox:lab\nCOPY --from=\\${name} /secret /secret\n${show}`,
      line: 2,
      reason: /without quotes and escapes/
    },
    {
      title: 'an escape in the name of the flag',
      text: `FROM busybox:lab\nCOPY --fro\\m=${name} /secret /secret\n${show}`,
      line: 2,
      reason: /COPY has no flag/
    },
    {
      title: 'a variable in --from',
      text: `ARG X=${name}\nFROM busybox:lab\nARG X\nCOPY --from=$X /secret /secret\n${show}`,
      line: 4,
      reason: /holds a variable/
    },
    {
      title: 'a flag whose value is the next word',
      text: `FROM busybox:lab\nCOPY --from ${name} /secret /secret\n${show}`,
      line: 2,
      reason: /--from has no value/
    },
    {
      title: 'a flag given twice',
      text: `FROM busybox:lab AS a\nFROM busybox:lab\nCOPY --from=a --from=${name} /secret /secret\n${show}`,
      line: 3,
      reason: /given twice/
    },
    {
      title: 'flags after the sign that ends them',
      text: `FROM busybox:lab\nCOPY -- --from=${name} /secret /secret\n${show}`,
      line: 2,
      reason: /COPY has no flag/
    },
    {
      title: 'the number of a stage written in another way',
      text: 'FROM busybox:lab\nFROM busybox:lab\nCOPY --from=+0 /bin/sh /x\n',
      line: 3,
      reason: /is the number of no stage/
    },
    {
      title: 'the number of the stage itself',
      text: 'FROM busybox:lab\nCOPY --from=0 /bin/sh /x\n',
      line: 2,
      reason: /is the number of no stage/
    },
    {
      title: 'the number of a stage to come',
      text: 'FROM busybox:lab\nCOPY --from=1 /bin/sh /x\nFROM busybox:lab\n',
      line: 2,
      reason: /is the number of no stage/
    },

    {
      title: 'a keyword over two lines',
      text: `FROM busybox:lab AS a\nFR\\\nOM ${name}\n${show}`,
      line: 2,
      reason: /does not begin with an instruction/
    },
    {
      title: 'a keyword over two lines, with another escape',
      text: `# escape=\`\nFROM busybox:lab AS a\nFR\`\nOM ${name}\n${show}`,
      line: 3,
      reason: /does not begin with an instruction/
    },
    {
      title: 'a keyword after an empty continued line',
      text: `FROM busybox:lab AS a\n\\\nFROM ${name}\n${show}`,
      line: 2,
      reason: /does not begin with an instruction/
    },
    {
      title: 'a keyword that the next line goes on with',
      text: `FROM busybox:lab AS a\nCOPY\\\nX\\\n --from=${name} /secret /secret\n`,
      line: 2,
      reason: /does not begin with an instruction/
    },
    {
      title: 'two escape characters at the end of a line',
      text: `FROM busybox:lab\nRUN true \\\\\nFROM ${name}\n${show}`,
      line: 2,
      reason: /two escape characters/
    },
    {
      title: 'three escape characters at the end of a line',
      text: `FROM busybox:lab\nRUN true \\\\\\\nFROM ${name}\n${show}`,
      line: 2,
      reason: /two escape characters/
    },
    {
      title: 'two other escape characters at the end of a line',
      text: `# escape=\`\nFROM busybox:lab\nRUN true \`\` \t\nFROM ${name}\n${show}`,
      line: 3,
      reason: /two escape characters/
    },
    {
      title: 'an escape character and a space that is none',
      text: `FROM busybox:lab\nRUN true \\\u00a0\nFROM ${name}\n${show}`,
      line: 2,
      reason: /ends in the escape character/
    },
    {
      title: 'a directive after another',
      text: `# syntax=docker/dockerfile:1\n# escape=\`\nFROM busybox:lab\nRUN true \`\nFROM ${name}\n${show}`
    },
    {
      title: 'a directive given twice',
      text: `# escape=\`\n# escape=\\\nFROM ${name}\n${show}`,
      line: 2,
      reason: /given twice/
    },
    {
      title: 'a directive that sets no escape character',
      text: `# escape=F\nFROM ${name}\n${show}`,
      line: 1,
      reason: /cannot be "F"/
    },
    {
      title: 'a byte order mark before a keyword',
      text: `FROM busybox:lab AS a\n\uFEFFFROM ${name}\n${show}`,
      line: 2,
      reason: /U\+FEFF/
    },
    {
      title: 'a byte order mark after a keyword',
      text: `FROM busybox:lab AS a\nFROM\uFEFF ${name}\n${show}`,
      line: 2,
      reason: /does not begin with an instruction/
    },
    {
      title: 'a byte order mark before a name',
      text: `FROM \uFEFF${name}\n${show}`,
      line: 1,
      reason: /U\+FEFF/
    },
    {
      title: 'a byte order mark before a flag',
      text: `FROM busybox:lab\nCOPY \uFEFF--from=${name} /secret /secret\n${show}`,
      line: 2,
      reason: /U\+FEFF/
    },
    {
      title: 'a wide space after a keyword',
      text: `FROM\u00a0${name}\n${show}`,
      line: 1,
      reason: /does not begin with an instruction/
    },
    {
      title: 'a wide space between words',
      text: `FROM busybox:lab\u2003AS\u2003a\n${show}`,
      line: 1,
      reason: /holds a character that no name of an image has/
    },
    {
      title: 'a line separator',
      text: `FROM busybox:lab\n\u2028FROM ${name}\n${show}`,
      line: 2,
      reason: /U\+2028/
    },
    {
      title: 'a next line',
      text: `FROM busybox:lab\nRUN true\n\u0085FROM ${name}\n${show}`,
      line: 3,
      reason: /U\+0085/
    },
    {
      title: 'a vertical tab',
      text: `FROM busybox:lab AS a\nFROM\v${name}\n${show}`,
      line: 2,
      reason: /control character U\+000B/
    },
    {
      title: 'a form feed before a keyword',
      text: `FROM busybox:lab AS a\n\fFROM ${name}\n${show}`,
      line: 2,
      reason: /control character U\+000C/
    },
    {
      title: 'a carriage return within a line',
      text: `FROM busybox:lab\rFROM ${name}\n${show}`,
      line: 1,
      reason: /carriage return/
    },
    {
      title: 'a carriage return before a continued line',
      text: `FROM busybox:lab\nRUN true \\\r\r\nFROM ${name}\n${show}`,
      line: 2,
      reason: /carriage return/
    },
    {
      title: 'a null character',
      text: `FROM busybox:lab\0\n${show}`,
      line: 1,
      reason: /control character U\+0000/
    },
    {
      title: 'a heredoc that hides instructions',
      text: `FROM busybox:lab\nRUN cat <<EOF\nFROM ${name}\nEOF\n${show}`,
      line: 2,
      reason: /heredocs/
    },
    {
      title: 'a heredoc in quotes',
      text: `FROM busybox:lab\nCOPY <<"X" /x\nFROM ${name}\nX\n${show}`,
      line: 2,
      reason: /heredocs/
    },
    {
      title: 'a heredoc of a trigger',
      text: `FROM busybox:lab\nONBUILD RUN 3<<-X cat\nFROM ${name}\nX\n`,
      line: 2,
      reason: /heredocs/
    },
    {
      title: 'a line longer than the engine takes',
      text: `FROM busybox:lab\nRUN ${'true; \\\n'.repeat(12_000)}true\nFROM ${name}\n`,
      line: 2,
      reason: /longer than 65000 bytes/
    },

    {
      title: 'a stage with the name of nothing',
      text: 'FROM busybox:lab AS scratch\nFROM scratch\nCOPY --from=0 /bin/sh /x\n',
      line: 1,
      reason: /cannot be called scratch/
    },
    {
      title: 'a stage that begins with a digit',
      text: 'FROM busybox:lab AS 0\nFROM busybox:lab\nCOPY --from=0 /bin/sh /x\n',
      line: 1,
      reason: /cannot be the name of a stage/
    },
    {
      title: 'a stage in quotes',
      text: 'FROM busybox:lab AS "a"\n',
      line: 1,
      reason: /cannot be the name of a stage/
    },
    {
      title: 'a stage with letters of another alphabet',
      text: 'FROM busybox:lab AS \u212A\n',
      line: 1,
      reason: /cannot be the name of a stage/
    },
    {
      title: 'a stage with a name that is taken',
      text: `FROM busybox:lab AS a\nFROM ${name} AS A\n`,
      line: 2,
      reason: /two stages called a/
    },
    {
      title: 'more words after FROM',
      text: `FROM busybox:lab AS a ${name}\n`,
      line: 1,
      reason: /is not understood/
    },
    {
      title: 'two words after FROM',
      text: `FROM busybox:lab ${name}\n`,
      line: 1,
      reason: /is not understood/
    },
    { title: 'a FROM of nothing', text: 'FROM $X\nRUN true\n', line: 1, reason: /names nothing/ },
    { title: 'a FROM without anything', text: 'FROM\nRUN true\n', line: 1, reason: /has no arguments/ },
    {
      title: 'an unknown flag of FROM',
      text: `FROM --from=${name} busybox:lab\n`,
      line: 1,
      reason: /FROM has no flag/
    },
    {
      title: 'a platform with a name in it',
      text: `FROM --platform="x" busybox:lab\n`,
      line: 1,
      reason: /without quotes and escapes/
    },
    {
      title: 'a form of variable that engines know or do not',
      text: `ARG X=1${name}\nFROM \${X:?1}\n${show}`,
      line: 2,
      reason: /holds a character/
    },
    {
      title: 'another form of variable that engines know or do not',
      text: `ARG X=1\nFROM \${X:@1}\n${show}`,
      line: 2,
      reason: /not known here/
    },
    {
      title: 'a variable without a colon',
      text: `FROM \${X-${name}}\n${show}`,
      line: 1,
      reason: /not known here/
    },
    {
      title: 'a brace that is not closed',
      text: `FROM \${X:-${name}\n${show}`,
      line: 1,
      reason: /lacks a closing/
    },
    {
      title: 'an instruction before FROM',
      text: `RUN true\nFROM ${name}\n`,
      line: 1,
      reason: /first instruction must be FROM/
    },
    { title: 'no instruction at all', text: '# nothing\n\n', line: 1, reason: /cannot be empty/ },
    {
      title: 'an unknown instruction',
      text: `FROM busybox:lab\nFLY away\n`,
      line: 2,
      reason: /unknown instruction: FLY/
    },
    {
      title: 'an instruction in letters of another alphabet',
      text: 'FROM busybox:lab\nONBUILD u\u017Fer x\n',
      line: 2,
      reason: /unknown instruction/
    },
    {
      title: 'an instruction with a sign in it',
      text: `FROM busybox:lab\nRUN: true\n`,
      line: 2,
      reason: /does not begin with an instruction/
    },

    {
      title: 'a mount of another image',
      text: `FROM busybox:lab\nRUN --mount=type=bind,from=${name},target=/x cat /x/secret\n`,
      line: 2,
      reason: /--mount option/
    },
    {
      title: 'a mount of a trigger',
      text: `FROM busybox:lab AS a\nONBUILD RUN --mount=type=bind,from=${name},target=/x cat /x/secret\nFROM a\n`,
      line: 2,
      reason: /--mount option/
    },
    {
      title: 'a step with the network of the machine',
      text: 'FROM busybox:lab\nRUN --network=host true\n',
      line: 2,
      reason: /--network option/
    },
    {
      title: 'a trigger that builds on another image',
      text: `FROM busybox:lab AS a\nONBUILD FROM ${name}\nFROM a\n${show}`,
      line: 2,
      reason: /ONBUILD FROM is not possible/
    },
    {
      title: 'a trigger of a trigger',
      text: `FROM busybox:lab AS a\nONBUILD ONBUILD COPY --from=${name} /secret /secret\nFROM a\n`,
      line: 2,
      reason: /ONBUILD ONBUILD is not possible/
    },
    {
      title: 'a trigger with another escape character',
      text: `# escape=\`\nFROM busybox:lab AS a\nONBUILD LABEL a="x\`" managed-by=y"\nFROM a\n`,
      line: 3,
      reason: /read in another way/
    },
    {
      title: 'a trigger that names a stage where there is none yet',
      text: `FROM busybox:lab AS a\nONBUILD COPY --from=late /secret /secret\nFROM a\n${show}FROM busybox:lab AS late\n`,
      line: 3,
      reason: /there is no stage "late" before this one/
    },

    ...[
      'application-id=x',
      '"application-id"=x',
      'managed-by x',
      'busbar-instance=x',
      'a=b BUSBAR-anything=c',
      'project-id=',
      "'database-id'=y",
      'deployment-id=z'
    ].map(text => ({
      title: `the label ${text}`,
      text: `FROM busybox:lab\nLABEL ${text}\n`,
      line: 2,
      reason:
        /(?:application-id|managed-by|busbar-instance|BUSBAR-anything|project-id|database-id|deployment-id)$/
    })),
    {
      title: 'a label whose key is computed',
      text: 'FROM busybox:lab\nENV X=application-id\nLABEL $X=y\n',
      line: 3,
      reason: /cannot be the key/
    },
    {
      title: 'a label whose key is computed, in the old form',
      text: 'FROM busybox:lab\nENV X=application-id\nLABEL ${X} y\n',
      line: 3,
      reason: /cannot be the key/
    },
    {
      title: 'a label with quotes within its key',
      text: 'FROM busybox:lab\nLABEL application-"id"=y\n',
      line: 2,
      reason: /cannot be the key/
    },
    {
      title: 'a label with an escape in its key',
      text: 'FROM busybox:lab\nLABEL application\\-id=y\n',
      line: 2,
      reason: /cannot be the key/
    },
    {
      title: 'a label behind a quote that is not closed',
      text: 'FROM busybox:lab\nLABEL a="b application-id=y\n',
      line: 2,
      reason: /opened and not closed/
    },
    {
      title: 'a label behind a wide space',
      text: 'FROM busybox:lab\nLABEL a=b\u2003application-id=y\n',
      line: 2,
      reason: /U\+2003/
    },
    {
      title: 'a label of a trigger',
      text: 'FROM busybox:lab\nONBUILD LABEL application-id=y\n',
      line: 2,
      reason: /application-id$/
    },

    {
      title: 'an address in ADD',
      text: 'FROM busybox:lab\nADD http://127.0.0.1:1/x /x\n',
      line: 2,
      reason: /ADD does not fetch/
    },
    {
      title: 'an address in capital letters',
      text: 'FROM busybox:lab\nADD HTTP://127.0.0.1:1/x /x\n',
      line: 2,
      reason: /ADD does not fetch/
    },
    {
      title: 'an address in the list form',
      text: 'FROM busybox:lab\nADD ["https://127.0.0.1:1/x", "/x"]\n',
      line: 2,
      reason: /ADD does not fetch/
    },
    {
      title: 'an address of a repository',
      text: 'FROM busybox:lab\nADD git@github.com:a/b.git /x\n',
      line: 2,
      reason: /ADD does not fetch/
    },
    {
      title: 'an address in a trigger',
      text: 'FROM busybox:lab AS a\nONBUILD ADD http://127.0.0.1:1/x /x\nFROM a\n',
      line: 2,
      reason: /ADD does not fetch/
    },
    {
      title: 'an address beside a file',
      text: 'FROM busybox:lab\nADD a http://127.0.0.1:1/x /x/\n',
      line: 2,
      reason: /one ADD for each/
    },
    {
      title: 'an address in COPY',
      text: 'FROM busybox:lab\nCOPY http://127.0.0.1:1/x /x\n',
      line: 2,
      reason: /COPY takes no address/
    }
  ]
}
