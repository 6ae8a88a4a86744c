/* The page of `xlog report --html`, as tools/report/web made it. */
	.section .rodata
	.global xlog_page_begin
	.global xlog_page_end
xlog_page_begin:
	.incbin "build/web/page.html"
xlog_page_end:
	.section .note.GNU-stack,"",@progbits
