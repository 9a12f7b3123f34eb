import type { EmailContent } from 'busbar/api/mail'

export const invitationEmail = (
  url: string,
  { role, inviter }: { readonly role: string; readonly inviter: string }
): EmailContent => ({
  subject: 'You are invited to Busbar',
  paragraphs: [
    `${inviter} has invited you to Busbar, the platform that runs their applications, as ${role === 'admin' ? 'an administrator' : 'a member'}.`,
    'Accept with the link below and choose a password. The link works once and for 7 days.'
  ],
  link: { label: 'Accept the invitation', url },
  note: 'If you do not know the sender, do nothing.'
})
