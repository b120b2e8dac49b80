# A stdio MCP server in plain Perl that does what it is told, bad things too. It reads its requests line by line.
use strict;
use warnings;
$| = 1;
my $starts = 0;
if (open(my $file, '<', "$ENV{HOME}/starts")) { $starts = <$file>; close $file }
open(my $file, '>', "$ENV{HOME}/starts") or die; print $file $starts + 1; close $file;
print STDERR "started with $ENV{SECRET}\n" if $ENV{SECRET};
print "this line is no message\n";
my %waiting;
sub text { my ($value) = @_; $value =~ s/([\\"])/\\$1/g; $value }
sub answer { my ($id, $text) = @_; print qq({"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"), text($text), qq("}]}}\n) }
sub tool { my ($name, $reads) = @_; qq({"name":"$name","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":$reads}}) }
while (my $line = <STDIN>) {
    my ($id) = $line =~ /"id":(\d+)/;
    my ($method) = $line =~ /"method":"([^"]+)"/;
    if ($method eq 'initialize') {
        print qq({"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}}\n);
    } elsif ($method eq 'tools/list') {
        print qq({"jsonrpc":"2.0","id":$id,"result":{"tools":[), join(',', tool('echo', 'true'), tool('hang', 'true'), tool('die', 'false'), tool('env', 'true'), tool('report', 'true')), qq(]}}\n);
    } elsif ($method eq 'tools/call') {
        my ($tool) = $line =~ /"name":"([a-z]+)"/;
        my ($message) = $line =~ /"message":"([^"]*)"/;
        if ($tool eq 'echo') { answer($id, $message) }
        elsif ($tool eq 'hang') { $waiting{$message} = $id }
        elsif ($tool eq 'report') {
            my ($token) = $line =~ /"progressToken":(\d+)/;
            print qq({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1,"message":"$message"}}\n);
            answer($id, $message);
        }
        elsif ($tool eq 'env') { answer($id, join(' ', "pid $$", "home $ENV{HOME}", "secret " . ($ENV{SECRET} // 'none'), "starts " . ($starts + 1), map { "$_=" } sort keys %ENV)) }
        else { print STDERR "last words: $message\n"; exit 3 }
    }
}
